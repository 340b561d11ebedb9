// The replications: all of them, and one with its alerts, its objects, the worst first, and its newest moves.

import { address, linkTo, offsetWish, turn } from "./address.js";
import { airflowLink, badge, bytes, columns, fetchJson, h, moment, number, pairs, scroll, section, span, who } from "./elements.js";
import { drawHeader } from "./header.js";
import { connections, historyLink, keepingFocus, newestOf, nothingFits, PAGE, pages, searchBox } from "./lists.js";
import { sourceBox } from "./sources.js";

const FEW_ALERTS = 3;
const KINDS = {
  running: "good", completed: "good", starting: "note", draining: "note", paused: "warn", active: "note", pending: "note",
  stopped: "warn", failed: "bad", failed_permanently: "bad", unsupported: "warn",
};

const view = document.getElementById("view");

export async function showReplications(signal) {
  const found = await fetchJson("api/v1/replications",
    { connection: address.get("connection"), limit: PAGE, offset: offsetWish() }, signal);
  drawHeader("replications", "replications", found.total);
  keepingFocus(() => {
    if (!view.querySelector("#list")) {
      view.replaceChildren(h("div", { id: "tools" }, connections(found), sourceBox()), h("div", { id: "list" }));
    }
    view.querySelector("#list").replaceChildren(
      ...(found.total === 0 ? [nothingYet(found)] : [table(found), found.total > found.limit ? pages(found, "replication", "replications") : ""]));
  });
}

export async function showReplication(signal) {
  const wish = {
    name: address.get("replication"),
    connection: address.get("connection"),
    search: address.get("search") ?? "",
    limit: PAGE,
    offset: offsetWish(),
  };
  const found = await fetchJson("api/v1/replication", wish, signal);
  drawHeader(found.replication.name, "replications", 1);
  keepingFocus(() => drawOne(found, wish));
}

function nothingYet(found) {
  return h(
    "section", { id: "empty" },
    h("h2", {}, "No replication yet"),
    h("p", {}, `The connection ${found.connection} has no replication. One is created by a task such as`),
    h("pre", {}, 'CreateReplicationOperator(task_id="create", replication="shop", source_conn_id="shop_database", ' +
      'target="replicated")'),
    h("p", {}, airflowLink("dags", "To the DAGs")),
  );
}

function table(found) {
  const names = ["Replication", "State", "Source", "Objects", "Behind", "Lag", "Captured", "Alerts"];
  return scroll("Replications",
    h("table", {},
      h("caption", { class: "aside" }, "Replications with their states and lags"),
      columns(names),
      h("tbody", {}, found.replications.map((one) => row(one, found)))));
}

function row(one, found) {
  const link = linkTo({ replication: one.name }, found.connections.length > 1 ? found.connection : "");
  return h(
    "tr", { "data-replication": one.name },
    h("th", { scope: "row" }, h("a", { href: link, id: `replication-${one.uid}` }, one.name)),
    h("td", {}, state(one.state)),
    h("td", { class: "wrap" }, one.source, h("span", { class: "exact" }, one.kind)),
    h("td", {}, objects(one)),
    h("td", {}, behind(one)),
    h("td", {}, lag(one)),
    h("td", {}, moment(one.captured_at, found.now)),
    h("td", { class: "clipped" }, alerts(one, FEW_ALERTS)),
  );
}

function drawOne(found, wish) {
  if (!view.querySelector("#replication")) view.replaceChildren(frame());
  const fill = (id, ...children) => view.querySelector(id).replaceChildren(...children.flat().filter(Boolean));
  const one = found.replication;
  fill("#facts", standing(found), belongings(found));
  fill("#alerts", alerts(one, one.alerts.length));
  const turning = () => pages(found, "object", "objects");
  if (found.total > 0) fill("#list", turning(), objectsTable(found), turning());
  else fill("#list", wish.search ? nothingFits("object", "objects", showAll) : h("p", { class: "quiet" }, "None yet."));
  fill("#met", found.errors.length > 0 ? errorsTable(found) : h("p", { class: "quiet" }, "None."));
  fill("#newest", movesTable(found));
}

// What is typed into the search stays while all around it is drawn anew.
function frame() {
  return h(
    "article", { id: "replication" },
    h("p", {}, h("a", { href: linkTo({ view: "replications" }, address.get("connection")), id: "back" }, "← All replications"),
      historyLink("replication", address.get("replication"), address.get("connection"))),
    h("div", { class: "top", id: "facts" }),
    section("Alerts", h("div", { id: "alerts" })),
    section("Objects",
      h("div", { id: "tools", role: "search" }, searchBox("object or target")),
      h("div", { id: "list" })),
    section("Errors", h("div", { id: "met" })),
    section("Newest moves", h("div", { id: "newest" })),
  );
}

function showAll() {
  view.replaceChildren();
  turn({ search: "", offset: 0 });
}

function standing(found) {
  const one = found.replication;
  return pairs([
    ["State", state(one.state)],
    ["Captured", moment(one.captured_at, found.now)],
    ["Lag", lag(one)],
    ["Objects", objects(one)],
    ["Behind", behind(one)],
  ]);
}

function belongings(found) {
  return pairs([
    ["Source", [
      h("a", { href: linkTo({ source: found.replication.source }, address.get("connection")), id: "to-source" },
        found.replication.source), `, ${found.replication.kind}`,
    ]],
    ["Target", `${found.target}, ${found.mode.replace("_", "-")}`],
    ["Event log", found.event_log],
    ["Slot", h("code", {}, found.slot)],
    ["Publication", h("code", {}, found.publication)],
    ["Created", moment(found.created_at, found.now)],
  ]);
}

function spoken(name) {
  return name.replaceAll("_", " ");
}

function state(name) {
  return KINDS[name] ? badge(KINDS[name], spoken(name)) : spoken(name);
}

function objects(one) {
  const counted = Object.entries(one.backfills).map(([name, count]) => `${number(count)} ${spoken(name)}`);
  return [number(one.objects), counted.length ? h("span", { class: "exact" }, `backfills: ${counted.join(", ")}`) : null];
}

function behind(one) {
  if (one.captured_at === null) return "–";
  return one.behind === 0 ? badge("good", "none") : `${number(one.behind)} of ${number(one.objects)}`;
}

function lag(one) {
  if (one.lag_seconds === null) return "–";
  return [span(one.lag_seconds), h("span", { class: "exact" }, `${bytes(one.lag_bytes)} of the source's log`)];
}

function alerts(one, most) {
  if (one.alert_count === 0) return h("span", { class: "quiet" }, "none");
  const shown = one.alerts.slice(0, most);
  const more = one.alert_count - shown.length;
  return [
    h("ul", { class: "alerts" }, shown.map((words) => h("li", {}, h("span", { class: "words", title: words }, words)))),
    more > 0 ? h("span", { class: "exact" }, `and ${number(more)} more`) : null,
  ];
}

function objectsTable(found) {
  return scroll("Objects",
    h("table", { id: "objects" },
      h("caption", { class: "aside" }, "Objects, the worst first"),
      columns(["Object", "Target", "Backfill", "Lag", "Behind", "Needs"]),
      h("tbody", {}, found.objects.map((one) => h("tr", { "data-object": one.name },
        h("th", { scope: "row" }, one.name),
        h("td", { class: "wrap" }, one.target),
        h("td", {}, backfill(one)),
        h("td", { class: "time" }, one.lag_seconds === null ? "–" : span(one.lag_seconds)),
        h("td", {}, one.behind ? badge("warn", "behind") : one.lag_seconds === null ? "–" : h("span", { class: "quiet" }, "no")),
        h("td", {}, needs(one)))))));
}

function backfill(one) {
  const { progress } = one;
  if (one.state !== "active") {
    return [state(one.state), progress ? h("span", { class: "exact" }, `${number(progress.done)} rows`) : null];
  }
  return [
    state(one.state),
    h("progress", { max: 100, value: progress?.percent, "aria-label": `Backfill of ${one.name}` }),
    h("span", { class: "exact" }, progress ? rowsRead(progress) : "no rows yet"),
  ];
}

function rowsRead({ done, expected, percent }) {
  return expected === null ? `${number(done)} rows`
    : `${Math.floor(percent)} %, ${number(done)} of about ${number(expected)} rows`;
}

function needs(one) {
  const needed = [
    one.needs_backfill ? [badge("warn", "a backfill"), h("span", { class: "exact" }, one.needs_backfill)] : null,
    one.problem ? h("div", { class: "bad" }, one.problem) : null,
    one.selected ? null : h("div", { class: "quiet" }, "the selection no longer names it"),
    one.gone ? h("div", { class: "quiet" }, "the source no longer has it") : null,
  ].filter(Boolean).flat();
  return needed.length > 0 ? needed : h("span", { class: "quiet" }, "nothing");
}

function older(part, words, found) {
  return newestOf("replication", found.replication.name, part, words, found.connection);
}

function errorsTable(found) {
  return scroll("Errors",
    h("table", { id: "errors" },
      h("caption", {}, found.older_errors
        ? older("errors", `The latest ${number(found.errors.length)} errors`, found) : "Every error"),
      columns(["Last seen", "First seen", "Times", "Object", "Reason", "Message", "Who"]),
      h("tbody", {}, found.errors.map((error) => h("tr", {},
        h("td", {}, moment(error.last_seen, found.now)),
        h("td", {}, moment(error.first_seen, found.now)),
        h("td", { class: "number" }, number(error.count)),
        h("td", { class: "wrap" }, error.object ?? h("span", { class: "quiet" }, "the replication")),
        h("td", {}, error.reason),
        h("td", { class: "wrap" }, error.message),
        h("td", {}, error.who ? who(error.who) : "–"))))));
}

function movesTable(found) {
  return scroll("Newest moves",
    h("table", { id: "moves" },
      h("caption", {}, found.older_moves
        ? older("moves", `The newest ${number(found.moves.length)} moves`, found) : "Every move"),
      columns(["When", "Object", "Act", "State", "Position", "Why", "Who"]),
      h("tbody", {}, found.moves.map((move) => h("tr", {},
        h("td", {}, moment(move.moved_at, found.now)),
        h("td", { class: "wrap" }, move.object ?? h("span", { class: "quiet" }, "the replication")),
        h("td", {}, move.act),
        h("td", {}, [...new Set([move.before, move.after])].map(spoken).join(" → ")),
        h("td", {}, move.position ? h("code", {}, move.position) : "–"),
        h("td", {}, move.why), h("td", {}, who(move.who)))))));
}
