// The page: the list of streams or one stream, as the address says; read anew every ten seconds while it is seen.

import { airflowLink, badge, behind, failing, fetchJson, followTheme, h, moment, number, staleIn, who } from "./elements.js";
import { drawDetails } from "./details.js";

const EVERY = 10_000;
const PAGE = 50;
const LAKE_WAIT = 3;
const COLUMNS = [
  ["Stream", "name"],
  ["Source", "source"],
  ["Mode", "mode"],
  ["Offset", "offset"],
  ["Behind", null],
  ["Stale in", null],
  ["Last commit", "advanced"],
  ["Open window", "held"],
];

const view = document.getElementById("view");
const trouble = document.getElementById("trouble");
const refreshed = document.getElementById("refreshed");
const address = addressed();
let asking = null;
let timer = null;

// Airflow does not hand on to a frame what the address around it asks for, so it is taken from there; once only, for
// then Airflow puts the frame's own address into its own.
function addressed() {
  const own = new URLSearchParams(location.search);
  if (window.parent === window || own.size > 0 || !/\/plugin\/[^/]+\/?$/.test(window.parent.location.pathname)) return own;
  const around = new URLSearchParams(window.parent.location.search);
  if (around.size > 0) history.replaceState(null, "", `?${around}`);
  return around;
}

function listWish() {
  return {
    connection: address.get("connection"),
    search: address.get("search") ?? "",
    held: address.get("held") === "true" ? "true" : "",
    sort: address.get("sort") ?? "name",
    descending: address.get("descending") === "true" ? "true" : "",
    offset: Number(address.get("offset") ?? 0) || 0,
    limit: PAGE,
  };
}

function turn(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === 0 || value === false) address.delete(name);
    else address.set(name, value);
  }
  const text = address.toString();
  history.replaceState(null, "", text ? `?${text}` : location.pathname);
  refresh();
}

function addressOf(stream, connection) {
  const wanted = new URLSearchParams({ stream });
  if (connection) wanted.set("connection", connection);
  return `?${wanted}`;
}

async function refresh() {
  clearTimeout(timer);
  asking?.abort();
  const mine = (asking = new AbortController());
  try {
    if (address.has("stream") || address.has("dag_id")) await showDetails(mine.signal);
    else await showList(mine.signal);
    trouble.hidden = true;
    refreshed.textContent = `As of ${new Date().toISOString().slice(11, 19)} UTC, read anew every ${EVERY / 1000} s`;
  } catch (error) {
    if (error.name === "AbortError") return;
    trouble.hidden = false;
    trouble.textContent = error.message;
    if (!(error.status >= 0)) throw error;
    if (error.status === 401 || error.status === 403 || error.status === 404) view.replaceChildren();
    if (error.status === 404) view.append(h("p", {}, h("a", { href: "./" }, "All streams")));
  } finally {
    if (mine === asking) {
      view.setAttribute("aria-busy", "false");
      timer = setTimeout(() => (document.hidden ? null : refresh()), EVERY);
    }
  }
}

async function showList(signal) {
  const wish = listWish();
  drawList(await fetchJson("api/streams", { ...wish, wait: 0 }, signal), wish);
  drawList(await fetchJson("api/streams", { ...wish, wait: LAKE_WAIT }, signal), wish);
}

async function showDetails(signal) {
  const wish = {
    name: address.get("stream"),
    connection: address.get("connection"),
    dag_id: address.get("dag_id"),
    run_id: address.get("run_id"),
    task_id: address.get("task_id"),
    map_index: address.get("map_index"),
  };
  const found = await fetchJson("api/stream", { ...wish, wait: LAKE_WAIT }, signal);
  document.getElementById("where").textContent = found.stream.name;
  keepingFocus(() => view.replaceChildren(drawDetails(found)));
}

function drawList(found, wish) {
  document.getElementById("where").textContent = "streams";
  keepingFocus(() => {
    if (!view.querySelector("#tools")) view.replaceChildren(tools(found), h("div", { id: "list" }));
    const list = view.querySelector("#list");
    const asked = wish.search || wish.held;
    if (found.total === 0) list.replaceChildren(asked ? nothingFits() : nothingYet(found));
    else list.replaceChildren(pages(found), table(found, wish), pages(found));
  });
}

function tools(found) {
  const search = h("input", {
    id: "search", type: "search", value: address.get("search") ?? "", maxlength: 200,
    placeholder: "name, source or path",
  });
  let waiting = null;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => turn({ search: search.value.trim(), offset: 0 }), 250);
  });
  const held = h("input", { id: "held", type: "checkbox" });
  held.checked = address.get("held") === "true";
  held.addEventListener("change", () => turn({ held: held.checked, offset: 0 }));
  return h(
    "div", { id: "tools", role: "search" },
    h("label", { for: "search" }, "Search"), search,
    h("label", {}, held, " only with an open window"),
    found.connections.length > 1 ? connections(found) : null,
  );
}

function connections(found) {
  const choice = h("select", { id: "connection" }, found.connections.map((name) => h("option", {}, name)));
  choice.value = found.connection;
  choice.addEventListener("change", () => turn({ connection: choice.value, offset: 0 }));
  return h("label", {}, "Connection ", choice);
}

function nothingYet(found) {
  return h(
    "section", { id: "empty" },
    h("h2", {}, "No stream yet"),
    h("p", {}, found.store === "absent"
      ? `No task has used the connection ${found.connection} yet.`
      : `The connection ${found.connection} has no stream.`),
    h("p", {}, "A stream is made by a task such as"),
    h("pre", {}, 'CreateStreamOperator(task_id="create", stream="order_changes", on="shop.orders")'),
    h("p", {}, "and is seen here as soon as that has run. Where streams are made with another connection, name it in " +
      "[tidemark] monitor_conn_ids of Airflow's configuration."),
    h("p", {}, airflowLink("dags", "To the DAGs")),
  );
}

function nothingFits() {
  return h("section", { id: "empty" }, h("h2", {}, "No stream fits"),
    h("button", { type: "button", onclick: () => { view.replaceChildren(); turn({ search: "", held: "", offset: 0 }); } },
      "Show all streams"));
}

function pages(found) {
  const last = Math.min(found.offset + found.limit, found.total);
  const step = (words, offset, possible) =>
    h("button", { type: "button", disabled: !possible, onclick: () => turn({ offset }) }, words);
  return h(
    "nav", { class: "pages", "aria-label": "Pages" },
    step("Previous", Math.max(0, found.offset - found.limit), found.offset > 0),
    h("span", {}, found.offset < found.total
      ? `${number(found.offset + 1)}–${number(last)} of ${number(found.total)} streams` : "past the last stream"),
    step("Next", found.offset + found.limit, last < found.total && found.offset < found.total),
  );
}

function table(found, wish) {
  return h(
    "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Streams" },
    h("table", {},
      h("caption", { class: "aside" }, "Streams, where each stands and how long it can wait"),
      h("thead", {}, h("tr", {}, COLUMNS.map(([words, sort]) => heading(words, sort, wish)))),
      h("tbody", {}, found.streams.map((one) => row(one, found)))),
  );
}

function heading(words, sort, wish) {
  if (sort === null) return h("th", { scope: "col" }, words);
  const here = wish.sort === sort;
  const down = Boolean(wish.descending);
  const next = { sort, descending: here && !down ? "true" : "", offset: 0 };
  return h(
    "th", { scope: "col", "aria-sort": here ? (down ? "descending" : "ascending") : "none" },
    h("button", { type: "button", id: `by-${sort}`, onclick: () => turn(next) }, words,
      h("span", { "aria-hidden": "true" }, here ? (down ? " ↓" : " ↑") : "")),
  );
}

function row(one, found) {
  const link = addressOf(one.name, found.connections.length > 1 ? found.connection : "");
  return h(
    "tr", { "data-stream": one.name },
    h("th", { scope: "row" }, h("a", { href: link, id: `stream-${one.uid}` }, one.name),
      one.initial_rows_pending ? h("span", { class: "exact" }, "owes the rows at the start") : null,
      failing(one.health),
      one.comment ? h("span", { class: "exact" }, one.comment) : null),
    h("td", { class: "wrap", title: one.path }, one.source),
    h("td", {}, one.mode.replace("_", "-")),
    h("td", { class: "number" }, number(one.offset)),
    h("td", { class: "clipped" }, behind(one.lag)),
    h("td", { class: "clipped" }, staleIn(one.lag)),
    h("td", {}, one.commit ? [moment(one.commit.moved_at, found.now), h("div", {}, who(one.commit.who, { short: true }))]
      : h("span", { class: "quiet" }, "none yet")),
    h("td", {}, one.held ? [moment(one.held.since, found.now), h("div", {}, who(one.held.owner))]
      : h("span", { class: "quiet" }, "none")),
  );
}

// What is drawn anew takes the focus back by its id.
function keepingFocus(draw) {
  const id = document.activeElement?.id;
  draw();
  if (id && document.activeElement?.id !== id) document.getElementById(id)?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
  const search = document.getElementById("search");
  if (search) {
    event.preventDefault();
    search.focus();
  }
});
document.addEventListener("visibilitychange", () => (document.hidden ? null : refresh()));
followTheme();
refresh();
