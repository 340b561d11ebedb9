// What needs attention: all kinds in one list, the worst first, each with its reason, its run, the way out and its acts.

import { actButtons, actsPart, shownActs } from "./acts.js";
import { address, linkTo, turn } from "./address.js";
import { command } from "./copying.js";
import { airflowLink, amount, badge, fetchJson, h, moment, number, say, span } from "./elements.js";
import { drawHeader } from "./header.js";
import { connections, isDrawn, keepingFocus, nothingFits, PAGE, searchBox, toTheMinute } from "./lists.js";

const view = document.getElementById("view");
const SOON = 2000;
const BADGES = { failed: "bad", warning: "warn", stopped: "note" }; // by the group of the reason
const GROUPS = { failed: "failed", warning: "with a warning", stopped: "stopped by a person" };
const passed = []; // cursors of the parts before this one

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
    figures(found);
    return;
  }
  const open = new Set([...view.querySelectorAll("details[open]")].map((one) => one.id));
  keepingFocus(() => {
    if (!view.querySelector("#needs")) view.replaceChildren(tools(found), h("div", { id: "figures", class: "quiet" }, h("span", { role: "status" }), " ", h("span", {})), h("div", { id: "needs" }));
    figures(found);
    view.querySelector("#needs").replaceChildren(...[list(found, wish), shownActs(history)].flat().filter(Boolean));
    for (const one of view.querySelectorAll("details")) one.open = open.has(one.id);
  });
}

function tools(found) {
  return h("div", { id: "tools", role: "search" }, searchBox("name"), kinds(found), connections(found));
}

function kinds(found) {
  const choice = h("select", { id: "kind" }, h("option", { value: "" }, "every kind"),
    Object.keys(found.objects).sort().map((name) => h("option", { value: name }, spoken(name))));
  choice.value = address.get("kind") ?? "";
  choice.addEventListener("change", () => turn({ kind: choice.value, cursor: "" }));
  return h("label", {}, "Kind ", choice);
}

function figures(found) {
  const looked = found.looked_at === null ? "Logs are being looked at." : ["Logs were looked at ", moment(found.looked_at, found.now)];
  const counted = Object.entries(GROUPS).filter(([name]) => found.counts[name] > 0)
    .map(([name, words]) => `${number(found.counts[name])} ${words}`);
  const needing = found.total === 0 ? "" : `${number(found.total)} of ${number(all(found))} objects need attention: ${counted.join(", ")}.`;
  const [told, age] = view.querySelectorAll("#figures > span");
  say(told, needing);
  age.replaceChildren(...[looked, found.not_looked_at > 0 ? ` ${notLookedAt(found)}.` : ""].flat());
}

function notLookedAt(found) {
  return `${number(found.not_looked_at)} of ${number(all(found))} objects not looked at`;
}

function all(found) {
  return Object.values(found.objects).reduce((sum, count) => sum + count, 0);
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
    return h("section", { id: "empty" }, h("h2", {}, badge("note", "not known"), ` ${notLookedAt(found)}`),
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

function turning(found) {
  const here = address.get("cursor") ?? "";
  if (!here) passed.length = 0;
  const back = () => turn({ cursor: passed.pop() ?? "" });
  const on = () => {
    passed.push(here);
    turn({ cursor: found.cursor });
  };
  if (!here && found.cursor === null) return null;
  return h("nav", { class: "pages", "aria-label": "Parts" },
    h("button", { type: "button", id: "before", disabled: !here, onclick: back }, "Before"),
    h("button", { type: "button", id: "after", disabled: found.cursor === null, onclick: on }, "After"));
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
  if (one.log_path) parts.push([airflowLink(one.log_path, "task log")]);
  if (one.run_path) parts.push(["run ", airflowLink(one.run_path, one.run.run_id)]);
  if (one.owner) parts.push(["DAG ", airflowLink(`dags/${encodeURIComponent(one.owner)}`, one.owner)]);
  parts.push([h("a", { href: linkTo({ history: one.name, kind: one.kind }, found.connections.length > 1 ? found.connection : "") }, "history")]);
  return parts.map((part) => h("span", { class: "fact" }, ...part));
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

