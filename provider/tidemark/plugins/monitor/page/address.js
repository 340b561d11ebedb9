// The page's address says what is looked at; whoever turns it has the page read anew.

const IN_AIRFLOW = new URL("../plugin/tidemark", document.baseURI).pathname;

export const address = addressed();
let follow = () => {};

// Airflow's page around this one; null in a tab of a DAG, a run or a task, whose address has the place of its own.
function around() {
  if (window.parent === window) return null;
  const { pathname } = window.parent.location;
  return pathname === IN_AIRFLOW || pathname.startsWith(`${IN_AIRFLOW}/`) ? window.parent : null;
}

// Airflow does not hand on to a frame what the address around it asks for, so it is taken from there. Only Airflow opens
// this page without a question.
function addressed() {
  const own = new URLSearchParams(location.search);
  const page = around();
  if (own.size === 0 && page?.location.search) history.replaceState(null, "", page.location.search);
  else toldAround();
  return new URLSearchParams(location.search);
}

// Airflow copies the frame's address into its own when the frame loads, and no change without a load. A reload, or a link
// that somebody copies, is to show the same.
function toldAround() {
  const page = around();
  page?.history.replaceState(page.history.state, "", page.location.pathname + location.search);
}

export function whenTurned(act) {
  follow = act;
}

export function refreshNow() {
  follow();
}

// `state`: what the browser keeps with the address. The way back leads along the objects in the middle of the lineage.
export function turn(changes, state = history.state) {
  const walks = (changes.object ?? address.get("object") ?? "") !== (address.get("object") ?? "");
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === 0 || value === false) address.delete(name);
    else address.set(name, value);
  }
  const text = address.toString();
  const here = text ? `?${text}` : location.pathname;
  if (walks) history.pushState(null, "", here);
  else history.replaceState(state, "", here);
  arrived();
}

function arrived() {
  document.getElementById("done").textContent = "";
  toldAround();
  follow();
}

window.addEventListener("popstate", () => {
  for (const name of new Set(address.keys())) address.delete(name);
  new URLSearchParams(location.search).forEach((value, name) => address.append(name, value));
  arrived();
});

// A link has a question in any case: an address without one is that by which Airflow opens the page.
export function linkTo(wanted, connection) {
  const asked = new URLSearchParams(wanted);
  if (connection) asked.set("connection", connection);
  return `?${asked}`;
}

export function offsetWish() {
  return Number(address.get("offset") ?? 0) || 0;
}
