// One stream: where it stands, its open window, what its transactions delivered, and the history of its offset.

import { address, linkTo } from "./address.js";
import { chart } from "./charts.js";
import { badge, behind, columns, failing, h, moment, number, pairs, scroll, section, staleIn, stateOf, who } from "./elements.js";
import { historyLink, newestOf } from "./lists.js";

export function drawDetails(found) {
  const one = found.stream;
  return h(
    "article", {},
    h("p", {}, h("a", { href: linkTo({ view: "streams" }, address.get("connection")), id: "back" }, "← All streams"), historyLink("stream", one.name, found.connection)),
    h("div", { class: "top" }, facts(one, found), section("History of the offset", plot(found))),
    section("Consumptions", consumptions(one.health, found)),
    section("Open window", one.held ? openWindow(one.held, found) : h("p", { class: "quiet" }, "None: the stream is free.")),
    section("Newest transactions", transactions(found)),
    section("Moves of the offset", movesTable(found)),
  );
}

function facts(one, found) {
  return pairs([
    ["State", stateOf(one)],
    ["Source", [one.source, one.source === one.path ? null : h("span", { class: "exact" }, one.path)]],
    ["Table id", h("code", {}, found.table_id)],
    ["Mode", one.mode.replace("_", "-")],
    ["Offset", [`version ${number(one.offset)}`,
      one.initial_rows_pending ? badge("note", "initial rows not delivered yet") : null]],
    ["Behind", behind(one.lag)],
    ["Stale in", staleIn(one.lag)],
    found.looked_at ? ["Log read", moment(found.looked_at, found.now)] : null,
    ["Offset moved", moment(one.advanced_at, found.now)],
    ["Created", moment(one.created_at, found.now)],
    one.comment ? ["Comment", one.comment] : null,
  ]);
}

function consumptions(health, found) {
  return pairs([
    ["Committed", `${number(health.consumptions)}, ${number(health.empty_windows)} of them empty`],
    ["Rows of change sets", [`${number(health.rows_delivered)} delivered`,
      health.rows_quarantined ? badge("warn", `${number(health.rows_quarantined)} in quarantine`) : null]],
    ["Failed attempts", [number(health.failures), failing(health) ? `, ${failing(health)}` : null]],
    health.failing_since ? ["Failing since", moment(health.failing_since, found.now)] : null,
    health.last_failed_at ? ["Last error", [health.last_error_type, ", ", moment(health.last_failed_at, found.now),
      health.last_error ? h("span", { class: "exact" }, health.last_error) : null]] : null,
    health.last_run ? ["Failed in", who(health.last_run)] : null,
  ]);
}

function openWindow(held, found) {
  const open = found.transactions.find((one) => one.state === "open");
  return [
    pairs([
      ["Held by", who(held.owner)],
      ["Since", moment(held.since, found.now)],
      ["Lease until", moment(held.lease_until, found.now)],
      ["Job", held.submitted ? ["submitted, ends before ", moment(held.job_deadline, found.now)] : "not submitted yet"],
      open ? ["Windows", open.windows.map((window) => h("div", {}, windowWords(window)))] : null,
    ]),
    open ? h("h3", {}, "Targets") : null,
    open ? writes(open) : null,
  ];
}

function windowWords(window) {
  const rows = window.rows === null ? "" : `, ${number(window.rows)} ${window.rows === 1 ? "row" : "rows"}`;
  return (window.initial_rows
    ? `${window.stream}: the rows at version ${number(window.from_version)}`
    : `${window.stream}: (${number(window.from_version)}, ${number(window.to_version)}]`) + rows;
}

function writes(transaction) {
  return h("table", {},
    columns(["Target", "Written as", "Holds it since version", "Rows"]),
    h("tbody", {}, transaction.writes.map((write) => h("tr", {},
      h("th", { scope: "row" }, write.target), h("td", {}, write.write_as),
      h("td", { class: "number" }, write.version === null ? "not yet" : number(write.version)),
      h("td", {}, rowsWords(write.rows))))));
}

function rowsWords(rows) {
  const counted = Object.entries(rows ?? {});
  return counted.length === 0 ? "–" : counted.map(([what, count]) => `${number(count)} ${what}`).join(", ");
}

function transactions(found) {
  if (found.transactions.length === 0) return h("p", { class: "quiet" }, "None yet.");
  return scroll("Transactions",
    h("table", { id: "transactions" },
      columns(["Run", "State", "Windows", "Opened", "Ended", "Targets"]),
      h("tbody", {}, found.transactions.map((one) => h("tr", { class: one.asked_for ? "asked" : null },
        h("th", { scope: "row" }, who(one.owner), one.asked_for ? badge("note", "the requested window") : null),
        h("td", {}, one.state),
        h("td", {}, one.windows.map((window) => h("div", {}, windowWords(window)))),
        h("td", {}, moment(one.opened_at, found.now)),
        h("td", {}, moment(one.closed_at, found.now)),
        h("td", {}, one.writes.map((write) => h("div", {}, `${write.target}: ${rowsWords(write.rows)}`))))))));
}

function movesTable(found) {
  return scroll("Moves of the offset",
    h("table", { id: "moves" },
      h("caption", {}, found.older_moves
        ? newestOf("stream", found.stream.name, "moves", `The newest ${number(found.moves.length)} moves`, found.connection)
        : "Every move"),
      columns(["When", "From", "To", "Why", "Who"]),
      h("tbody", {}, found.moves.map((move) => h("tr", {},
        h("td", {}, moment(move.moved_at, found.now)),
        h("td", { class: "number" }, number(move.from_version)),
        h("td", { class: "number" }, number(move.to_version)),
        h("td", {}, move.why), h("td", {}, who(move.who)))))));
}

// The points that the store has, and what the newest look at the log has found.
function plot(found) {
  const { offset, lag } = found.stream;
  const now = lag.head === null ? [] : [{ place: "now", at: found.looked_at ?? found.now, offset, head: Math.max(offset, lag.head) }];
  const part = { ...found.versions, points: [...now, ...found.versions.points] };
  return h("div", { id: "plot" }, part.charts.map((one) => chart(part, one)));
}
