// The streams: a list of them, searched, sorted and turned by the server, and one by itself.

import { address, linkTo, offsetWish, turn } from "./address.js";
import { airflowLink, behind, h, moment, number, scroll, staleIn, stateOf, who } from "./elements.js";
import { drawHeader } from "./header.js";
import { connections, fetchLooked, heading, isDrawn, keepingFocus, keepingOpen, looked, nothingFits, PAGE, pages, searchBox, toTheMinute } from "./lists.js";

const COLUMNS = [
  ["Stream", "name"],
  ["State", "state"],
  ["Source", "source"],
  ["Mode", "mode"],
  ["Offset", "offset"],
  ["Behind", null],
  ["Stale in", null],
  ["Last commit", "advanced"],
  ["Open window", "held"],
];

const view = document.getElementById("view");

function listWish() {
  return {
    connection: address.get("connection"),
    search: address.get("search") ?? "",
    held: address.get("held") === "true" ? "true" : "",
    sort: address.get("sort") ?? "name",
    descending: address.get("descending") === "true" ? "true" : "",
    offset: offsetWish(),
    limit: PAGE,
  };
}

export async function showStreams(signal) {
  const wish = listWish();
  await fetchLooked("api/v1/streams", wish, signal, drawList, (found) => found.not_looked_at > 0);
}

export async function showStream(signal) {
  const wish = {
    name: address.get("stream"),
    connection: address.get("connection"),
    dag_id: address.get("dag_id"),
    run_id: address.get("run_id"),
    task_id: address.get("task_id"),
    map_index: address.get("map_index"),
  };
  await fetchLooked("api/v1/stream", wish, signal, (one) => drawStream(one, signal), (found) => found.stream.lag.state === "waiting");
}

// The modules of charts come with the first stream that is looked at by itself. Meanwhile the reader may have left it.
async function drawStream(found, signal) {
  const details = await import("./details.js");
  signal.throwIfAborted();
  drawHeader(found.stream.name, "streams", found.replications);
  if (isDrawn(toTheMinute(found), "#plot")) return;
  keepingOpen(() => view.replaceChildren(details.drawDetails(found)));
}

function drawList(found, wish) {
  drawHeader("streams", "streams", found.replications);
  if (isDrawn([toTheMinute(found), wish], "#list > *")) return;
  keepingFocus(() => {
    if (!view.querySelector("#tools")) view.replaceChildren(tools(found), h("div", { id: "list" }));
    const list = view.querySelector("#list");
    const asked = wish.search || wish.held;
    if (found.total === 0) list.replaceChildren(asked ? nothingFits("stream", "streams", showAll) : nothingYet(found));
    else list.replaceChildren(pages(found, "stream", "streams"), table(found, wish), pages(found, "stream", "streams"), looked(found) ?? "");
  });
}

function showAll() {
  view.replaceChildren();
  turn({ search: "", held: "", offset: 0 });
}

function tools(found) {
  const held = h("input", { id: "held", type: "checkbox" });
  held.checked = address.get("held") === "true";
  held.addEventListener("change", () => turn({ held: held.checked, offset: 0 }));
  return h(
    "div", { id: "tools", role: "search" },
    searchBox("name, source or path"),
    h("label", {}, held, " only with an open window"),
    connections(found),
  );
}

function nothingYet(found) {
  return h(
    "section", { id: "empty" },
    h("h2", {}, "No stream yet"),
    h("p", {}, found.store === "absent"
      ? `No task has used the connection ${found.connection} yet.`
      : `The connection ${found.connection} has no stream.`),
    h("p", {}, "A stream is created by a task such as"),
    h("pre", {}, 'CreateStreamOperator(task_id="create", stream="order_changes", on="shop.orders")'),
    h("p", {}, "and is shown here after its first run. If streams use another connection, name it in " +
      "[tidemark] monitor_conn_ids of Airflow's configuration."),
    h("p", {}, airflowLink("dags", "To the DAGs")),
  );
}

function table(found, wish) {
  return scroll(
    "Streams",
    h("table", {},
      h("caption", { class: "aside" }, "Streams with their offsets, lags and hours to stale"),
      h("thead", {}, h("tr", {}, COLUMNS.map(([words, sort]) => heading(words, sort, wish, listWish)))),
      h("tbody", {}, found.streams.map((one) => row(one, found)))),
  );
}

function row(one, found) {
  const link = linkTo({ stream: one.name }, found.connections.length > 1 ? found.connection : "");
  return h(
    "tr", { "data-stream": one.name },
    h("th", { scope: "row" }, h("a", { href: link, id: `stream-${one.uid}` }, one.name),
      one.initial_rows_pending ? h("span", { class: "exact" }, "initial rows not delivered yet") : null,
      one.comment ? h("span", { class: "exact" }, one.comment) : null),
    h("td", {}, stateOf(one)),
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
