// The page's address says what is looked at; whoever turns it has the page read anew.

export const address = addressed();
let follow = () => {};

// Airflow does not hand on to a frame what the address around it asks for, so it is taken from there; once only, for
// then Airflow puts the frame's own address into its own.
function addressed() {
  const own = new URLSearchParams(location.search);
  if (window.parent === window || own.size > 0 || !/\/plugin\/[^/]+\/?$/.test(window.parent.location.pathname)) return own;
  const around = new URLSearchParams(window.parent.location.search);
  if (around.size > 0) history.replaceState(null, "", `?${around}`);
  return around;
}

export function whenTurned(act) {
  follow = act;
}

export function refreshNow() {
  follow();
}

export function turn(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === 0 || value === false) address.delete(name);
    else address.set(name, value);
  }
  document.getElementById("done").textContent = "";
  const text = address.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
  follow();
}

export function linkTo(wanted, connection) {
  const asked = new URLSearchParams(wanted);
  if (connection) asked.set("connection", connection);
  return asked.size > 0 ? `?${asked}` : "./";
}

export function offsetWish() {
  return Number(address.get("offset") ?? 0) || 0;
}
