// The work of tasks, as a tab of Airflow's own pages shows it: of a DAG, of a run, or of one task.

import { address, linkTo, turn } from "./address.js";
import { amount, badge, bytes, columns, fetchJson, h, moment, number, scroll, section, span, who } from "./elements.js";
import { drawHeader } from "./header.js";
import { connections, isDrawn, keepingFocus, toTheMinute } from "./lists.js";

const BADGES = { failed: "bad", warning: "warn", waiting: "note", ok: "good" };
const SOON = 2000;

const view = document.getElementById("view");

// Airflow leaves the place of an index as it is if a task is not mapped.
function given(name) {
  const value = address.get(name) ?? "";
  return /^\{[A-Z_]+\}$/.test(value) ? "" : value;
}

function wished() {
  const task = given("task_id");
  return {
    connection: address.get("connection"), dag_id: given("dag_id"), run_id: given("run_id"), task_id: task,
    map_index: task ? given("map_index") || "-1" : "", cursor: given("cursor"),
  };
}

export async function showRun(signal) {
  const wish = wished();
  let found = await fetchJson("api/v1/run", wish, signal);
  draw(found);
  if (found.unseen.length === 0) return;
  await new Promise((done) => setTimeout(done, SOON));
  if (signal.aborted || document.hidden) return;
  found = await fetchJson("api/v1/run", wish, signal);
  draw(found);
}

function draw(found) {
  drawHeader([found.dag_id, found.run_id, found.task_id].filter(Boolean).join(", "), "run", 1);
  if (isDrawn(toTheMinute(found), "#run")) return;
  const shows = (name) => found.continues === null || found.continues === name;
  keepingFocus(() => view.replaceChildren(h("div", { id: "run" },
    found.connections.length > 1 ? h("div", { id: "tools" }, connections(found)) : null,
    found.run_id !== null && shows("touched") ? touched(found) : null,
    shows("transactions") ? [windows(found), writes(found)] : null,
    next(found),
    shows("owned") ? owned(found) : null,
  )));
}

// The way to what follows in a list. The other lists are on the first page.
function turning(found, name, words) {
  const cursor = found.cursors[name] ?? null;
  if (cursor === null && found.continues !== name) return null;
  return h("nav", { class: "pages", "aria-label": `Pages: ${words}` },
    h("button", { type: "button", id: `first-${name}`, disabled: found.continues === null, onclick: () => turn({ cursor: "" }) }, "First page"),
    h("button", { type: "button", id: `more-${name}`, disabled: cursor === null, onclick: () => turn({ cursor }) },
      name === "transactions" ? "Older" : "Next"));
}

function touched(found) {
  const more = found.more_touched > 0 ? h("p", { class: "quiet" }, `and ${number(found.more_touched)} more`) : null;
  return h("div", { id: "touched" }, section(found.task_id ? "Objects of this task" : "Objects of this run",
    found.touched.length === 0 ? h("p", { class: "quiet" }, "No object that still exists.")
      : objects("Objects that were touched", found, found.touched.map((one) => [one.object, one])), more,
    turning(found, "touched", "objects that were touched")));
}

function owned(found) {
  return h("div", { id: "owned" }, section("Objects of this DAG",
    h("p", { class: "quiet" }, "Runs of this DAG have created them, or have written them last."),
    found.owned.length === 0 ? h("p", { class: "quiet" }, "None.")
      : objects("Objects of this DAG", found, found.owned.map((one) => [one, null])),
    found.total > found.owned.length ? h("p", { class: "quiet" }, `${number(found.owned.length)} of ${number(found.total)} objects`) : null,
    turning(found, "owned", "objects of this DAG")));
}

function objects(label, found, rows) {
  const connection = found.connections.length > 1 ? found.connection : "";
  const did = rows.some(([, touch]) => touch !== null);
  return scroll(label, h("table", {}, h("caption", { class: "aside" }, label),
    columns(["State", "Kind", "Object", "Lag", ...(did ? ["Done", "Why"] : []), "Problem", "Lineage"]),
    h("tbody", {}, rows.map(([one, touch]) => h("tr", { "data-object-of-run": `${one.kind} ${one.name}` },
      h("td", {}, badge(BADGES[one.severity] ?? "note", spoken(one.state))),
      h("td", {}, spoken(one.kind)),
      h("th", { scope: "row" }, one.view ? h("a", { href: linkTo(one.view, connection) }, one.name) : one.name),
      h("td", {}, found.unseen.includes(one.uid) ? "not known yet" : lag(one)),
      did ? [h("td", {}, touch.did), h("td", { class: "why" }, touch.why ?? "–")] : null,
      h("td", { class: "clipped" }, one.problem ? h("span", { class: "words", title: one.problem }, one.problem) : "–"),
      h("td", {}, h("a", { href: linkTo({ view: "lineage", object: `${one.kind}/${one.uid}` }, connection),
        "aria-label": `Lineage of ${spoken(one.kind)} ${one.name}` }, "lineage")))))));
}

function windows(found) {
  const rows = found.transactions.flatMap((one) => one.windows.map((window) => [one, window]));
  if (rows.length === 0) return section("Windows", h("p", { class: "quiet" }, "No window of a stream was taken."), turning(found, "transactions", "windows"));
  const some = found.continues === null && found.cursors.transactions !== undefined;
  const label = some ? `Windows of the newest ${number(found.transactions.length)} transactions` : "Windows";
  return section("Windows", turning(found, "transactions", "windows"), scroll(label, h("table", { id: "windows" }, h("caption", { class: some ? null : "aside" }, label),
    columns(["Task", "Stream", "Versions", "Rows", "State", "Opened", "Ended"]),
    h("tbody", {}, rows.map(([one, window]) => h("tr", { class: one.asked_for ? "asked" : null },
      h("td", {}, who(one.owner)),
      h("th", { scope: "row" }, h("a", { href: linkTo({ stream: window.stream }, found.connections.length > 1 ? found.connection : "") }, window.stream)),
      h("td", { class: "number" }, window.initial_rows ? `rows at ${number(window.from_version)}`
        : `(${number(window.from_version)}, ${number(window.to_version)}]`),
      h("td", { class: "number" }, number(window.rows)),
      h("td", {}, one.state),
      h("td", {}, moment(one.opened_at, found.now)),
      h("td", {}, moment(one.closed_at, found.now))))))));
}

function writes(found) {
  const rows = found.transactions.flatMap((one) => one.writes.map((write) => [one, write]));
  if (rows.length === 0) return null;
  return section("Evidence of each target", scroll("Evidence of each target", h("table", { id: "evidence" },
    h("caption", { class: "aside" }, "Evidence of each target, as its own log shows it"),
    columns(["Task", "Target", "Written by", "Version", "Rows"]),
    h("tbody", {}, rows.map(([one, write]) => h("tr", {},
      h("td", {}, who(one.owner, { short: true })),
      h("th", { scope: "row" }, write.target),
      h("td", {}, write.write_as),
      h("td", { class: "number" }, write.version === null ? "not yet" : number(write.version)),
      h("td", {}, write.rows === null ? "–" : counted(write.rows))))))));
}

const NEXT = {
  ready: ["note", "ready"], nothing: ["good", "nothing is new"], open: ["note", "open: it is finished first"],
  unreadable: ["bad", "cannot be read"], unknown: ["note", "not known yet"],
};

// A dry run from the store and from earlier looks at logs. A task with bounds takes a part of it.
function next(found) {
  if (found.next.length === 0) return null;
  const connection = found.connections.length > 1 ? found.connection : "";
  const label = "Next window of each stream";
  return h("div", { id: "next" }, section("A dry run for the next one",
    h("p", { class: "quiet" }, "The window that the next run would take now. Rows and bytes are estimated by the windows above. " +
      "If its task sets a bound, the window may be smaller."),
    scroll(label, h("table", {}, h("caption", { class: "aside" }, label),
      columns(["Stream", "State", "Window", "Versions", "Rows, about", "Bytes, about"]),
      h("tbody", {}, found.next.map((one) => h("tr", { "data-next": one.stream },
        h("th", { scope: "row" }, h("a", { href: linkTo({ stream: one.stream }, connection) }, one.stream)),
        h("td", {}, badge(...NEXT[one.state]), one.problem ? h("span", { class: "exact words", title: one.problem }, one.problem) : null),
        h("td", { class: "number" }, spanOf(one)),
        h("td", { class: "number" }, number(one.versions)),
        h("td", { class: "number" }, number(one.rows)),
        h("td", { class: "number" }, one.bytes === null ? "–" : bytes(one.bytes)))))))));
}

function spanOf(one) {
  if (one.initial_rows) return `rows at ${number(one.from_version)}`;
  if (one.to_version === null) return `from ${number(one.from_version)}`;
  return `(${number(one.from_version)}, ${number(one.to_version)}]`;
}

function counted(rows) {
  return Object.entries(rows).map(([what, count]) => `${number(count)} ${what}`).join(", ") || "none";
}

function lag(one) {
  return amount(one) ?? (one.lag_seconds === null ? "–" : span(one.lag_seconds));
}

function spoken(name) {
  return name.replaceAll("_", " ").toLowerCase();
}
