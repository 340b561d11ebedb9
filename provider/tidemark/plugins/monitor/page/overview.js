// What needs attention: all kinds in one list, the worst first, each with its reason, its run, the way out and its acts.

import { actButtons, actsPart, shownActs } from "./acts.js";
import { address, linkTo, turn } from "./address.js";
import { command } from "./copying.js";
import { airflowLink, amount, badge, fetchJson, h, moment, number, say, span } from "./elements.js";
import { drawHeader } from "./header.js";
import { connections, isDrawn, keepingFocus, kinds, nothingFits, offerKinds, PAGE, searchBox, toTheMinute } from "./lists.js";

const view = document.getElementById("view");
const SOON = 2000;
const BADGES = { failed: "bad", warning: "warn", stopped: "note" }; // by the group of the reason
const GROUPS = { failed: "failed", warning: "with a warning", stopped: "stopped by a person" };

function listWish() {
  return {
    connection: address.get("connection"),
    kind: address.get("kind"),
    search: address.get("search") ?? "",
    cursor: address.get("cursor"),
    limit: PAGE,
  };
}

function drawnFor(wish) {
  return { ...wish, acts: address.get("acts") };
}

export async function showOverview(signal) {
  const wish = listWish();
  let found = await fetchJson("api/v1/overview", wish, signal);
  const history = await actsPart({ connection: wish.connection }, signal);
  draw(found, history, wish);
  if (found.looked_at !== null || found.store === "absent") return;
  await new Promise((done) => setTimeout(done, SOON));
  if (signal.aborted || document.hidden) return;
  found = await fetchJson("api/v1/overview", wish, signal);
  draw(found, history, wish);
}

function draw(found, history, wish) {
  drawHeader("overview", "overview", found.objects.replication ?? 0);
  const listed = { ...toTheMinute(found), looked_at: null, not_looked_at: found.total === 0 ? found.not_looked_at : null };
  if (isDrawn([listed, { ...history, now: null }, drawnFor(wish)], "#needs")) {
    figures(found, wish);
    return;
  }
  const open = new Set([...view.querySelectorAll("details[open]")].map((one) => one.id));
  keepingFocus(() => {
    if (!view.querySelector("#needs")) view.replaceChildren(tools(found), h("div", { id: "figures", class: "quiet" }, h("span", { role: "status" }), " ", h("span", {})), h("div", { id: "needs" }));
    offerKinds(Object.fromEntries(Object.keys(found.objects).sort().map((name) => [name, spoken(name)])));
    figures(found, wish);
    view.querySelector("#needs").replaceChildren(...[list(found, wish), shownActs(history)].flat().filter(Boolean));
    for (const one of view.querySelectorAll("details")) one.open = open.has(one.id);
  });
}

function tools(found) {
  return h("div", { id: "tools", role: "search" }, searchBox("name"), kinds(), connections(found));
}

// With a kind or a search, the figures are of what fits, not of all objects.
function figures(found, wish) {
  const looked = found.looked_at === null ? "Logs are being read." : ["Logs were read ", moment(found.looked_at, found.now)];
  const counted = Object.entries(GROUPS).filter(([name]) => found.counts[name] > 0)
    .map(([name, words]) => `${number(found.counts[name])} ${words}`);
  const needing = found.total === 0 ? "" : `${needers(found, wish)}: ${counted.join(", ")}.`;
  const [told, age] = view.querySelectorAll("#figures > span");
  say(told, needing);
  age.replaceChildren(...[looked, found.not_looked_at > 0 ? ` ${notLookedAt(found, wish)}.` : ""].flat());
}

function needers(found, { kind, search }) {
  if (!search) return `${number(found.total)} of ${number(all(found, kind))} objects need attention`;
  return found.total === 1 ? "1 object that fits needs attention" : `${number(found.total)} objects that fit need attention`;
}

function notLookedAt(found, { kind }) {
  return `${number(found.not_looked_at)} of ${number(all(found, kind))} objects not checked yet`;
}

function all(found, kind) {
  return Object.entries(found.objects).reduce((sum, [name, count]) => (!kind || name === kind ? sum + count : sum), 0);
}

function list(found, wish) {
  if (found.total > 0) {
    return [h("ol", { class: "needs" }, found.needs.map((one) => need(one, found))), turning(found)];
  }
  if (wish.search || wish.kind) return nothingFits("object", "objects", showAll);
  if (all(found) === 0) {
    return h("section", { id: "empty" }, h("h2", {}, "No object yet"),
      h("p", {}, `No task has used the connection ${found.connection} yet.`), h("p", {}, airflowLink("dags", "To the DAGs")));
  }
  if (found.not_looked_at > 0) {
    return h("section", { id: "empty" }, h("h2", {}, badge("note", "not known"), ` ${notLookedAt(found, wish)}`),
      h("p", {}, "Their logs have not answered yet. No other object needs attention."));
  }
  return h("section", { id: "empty" },
    h("h2", {}, badge("good", "well"), " Nothing needs attention"),
    h("p", {}, Object.entries(found.objects).sort().map(([kind, count]) => `${number(count)} ${plural(kind, count)}`).join(", "), "."));
}

function showAll() {
  view.replaceChildren();
  turn({ search: "", kind: "", cursor: "" });
}

// The browser keeps the cursors of the parts before this one beside the address. They are not known to who came by a link.
function turning(found) {
  const here = address.get("cursor") ?? "";
  if (!here && found.cursor === null) return null;
  const passed = here ? history.state?.passed ?? [] : [];
  const back = () => turn({ cursor: passed.at(-1) ?? "" }, { passed: passed.slice(0, -1) });
  const on = () => turn({ cursor: found.cursor }, { passed: [...passed, here] });
  return h("nav", { class: "pages", "aria-label": "Parts" },
    h("button", { type: "button", id: "before", disabled: !here, onclick: back }, here && passed.length === 0 ? "First" : "Previous"),
    h("button", { type: "button", id: "after", disabled: found.cursor === null, onclick: on }, "Next"));
}

function need(one, found) {
  const connection = found.connections.length > 1 ? found.connection : "";
  const name = one.view ? h("a", { href: linkTo(one.view, connection), id: `need-${one.uid}` }, one.name) : one.name;
  return h("li", { "data-need": `${one.kind} ${one.name}`, class: `need ${BADGES[one.group]}` },
    h("h2", {}, badge(BADGES[one.group], words(one)), " ", h("span", { class: "quiet" }, spoken(one.kind)), " ", name),
    h("p", { class: "reason" }, one.reason),
    h("p", { class: "facts" }, facts(one, found)),
    wayOut(one),
    actButtons(one, found));
}

function words(one) {
  const state = spoken(one.state);
  return one.need === "failed" || state === one.words ? state : `${one.words}: ${state}`;
}

function facts(one, found) {
  const parts = [];
  if (one.since) parts.push([one.since_seen ? "seen since " : "since ", moment(one.since, found.now)]);
  if (one.lag_seconds !== null) parts.push([`lag ${span(one.lag_seconds)}${beside(one)}`]);
  if (one.log_path) parts.push([airflowLink(one.log_path, one.run_met ? "task log" : "log of the last task")]);
  if (one.run_path) parts.push([one.run_met ? "run " : "last run ", airflowLink(one.run_path, one.run.run_id)]);
  if (one.owner) parts.push(["DAG ", airflowLink(`dags/${encodeURIComponent(one.owner)}`, one.owner)]);
  const connection = found.connections.length > 1 ? found.connection : "";
  if (one.lineage) parts.push([lineageLink(one, connection)]);
  parts.push([h("a", { href: linkTo({ history: one.uid, kind: one.kind }, connection) }, "history")]);
  return parts.map((part) => h("span", { class: "fact" }, ...part));
}

function lineageLink(one, connection) {
  const words = dependents(one.dependents);
  return h("a", { href: linkTo(one.lineage, connection), "aria-label": `${words}: lineage of ${spoken(one.kind)} ${one.name}` }, words);
}

// The server counts no more than so many.
const MANY = 1000;

function dependents(count) {
  if (count === null) return "lineage";
  if (count === 0) return "nothing depends on it";
  if (count === 1) return "1 table or object depends on it";
  return `${number(count)}${count < MANY ? "" : " or more"} tables and objects depend on it`;
}

function beside(one) {
  const counted = amount(one);
  return counted === null ? "" : `, ${counted}`;
}

function wayOut(one) {
  return h("details", { id: `way-${one.uid}` }, h("summary", {}, "What to do"), h("p", {}, one.advice),
    one.commands.map((text) => command(text)));
}

export function spoken(name) {
  return name.replaceAll("_", " ").toLowerCase();
}

function plural(kind, count) {
  return spoken(kind) + (count === 1 ? "" : "s");
}

