// The history of an object of any kind: what the server says that there is, as charts and as tables.

import { actButtons, actsPart, offersOf, shownActs } from "./acts.js";
import { address, linkTo, turn } from "./address.js";
import { chart, rows, table } from "./charts.js";
import { h, number, section } from "./elements.js";
import { drawHeader } from "./header.js";
import { fetchLooked, isDrawn, keepingOpen, looked, toTheMinute } from "./lists.js";
import { states, tree } from "./trees.js";

const POINTS = 200;
const view = document.getElementById("view");

export async function showHistory(signal) {
  const wish = {
    connection: address.get("connection"),
    kind: address.get("kind") ?? "",
    name: address.get("history"),
    part: address.get("part"),
    cursor: address.get("cursor"),
    limit: POINTS,
  };
  await fetchLooked("api/v1/history", wish, signal, (found) => drawWithActs(found, wish, signal), (found) => found.not_looked_at > 0);
}

async function drawWithActs(found, wish, signal) {
  const of = { connection: found.connection, kind: found.kind, uid: found.uid };
  const acts = await actsPart(of, signal);
  draw({ ...found, acts: { ...acts, now: null }, offers: await offersOf(found.kind, found.uid, found.connection, signal) },
    { ...wish, acts: address.get("acts") });
}

// What somebody reads or has opened stays where it is: the same answer draws nothing.
function draw(found, wish) {
  drawHeader(`${spoken(found.kind)} ${found.name}`, "objects", found.replications);
  if (isDrawn([{ ...toTheMinute(found), now: null }, wish], "#history")) return;
  keepingOpen(() => view.replaceChildren(article(found, wish)));
}

function article(found, wish) {
  const connection = found.connections.length > 1 ? found.connection : "";
  return h("article", { id: "history" },
    h("p", {}, h("a", { href: linkTo({ view: "objects" }, connection), id: "back" }, "← All objects"),
      found.view ? [" ", h("a", { href: linkTo(found.view, connection), id: "own-view" }, "Current state")] : null),
    found.elsewhere ? h("p", {}, found.elsewhere) : null,
    looked(found),
    found.offers?.acts.length ? section("Acts", actButtons(found.offers, found)) : null,
    found.parts.map((part) => shownPart(part, found, wish)),
    shownActs({ ...found.acts, now: found.now }));
}

function shownPart(part, found, wish) {
  if (part.points.length === 0) return section(part.words, h("p", { class: "quiet" }, wish.cursor ? "None there." : "None yet."), turning(part, wish));
  const charts = part.charts.map((one) => withStates(one, part, chart(part, one, tree(found.now))));
  return section(part.words, h("div", { class: "charts" }, charts),
    whole(part),
    turning(part, wish));
}

// All figures of the points. A tree's own table has them already.
function whole(part) {
  if (part.charts.some(({ shape }) => shape === "tree")) return null;
  return part.charts.length === 0 ? rows(part.words, part.fields, part.points)
    : table(`part-${part.name}`, { title: part.words }, part.fields, part.points);
}

function withStates(one, part, figure) {
  if (figure !== null && one.shape === "tree") figure.querySelector(".point-said").before(states(part.points));
  return figure;
}

function turning(part, wish) {
  if (part.cursor === null && !wish.cursor) return null;
  return h("nav", { class: "pages", "aria-label": `Pages: ${part.words}` },
    h("button", { type: "button", id: `newest-${part.name}`, disabled: !wish.cursor, onclick: () => turn({ part: "", cursor: "" }) }, "Newest of all parts"),
    h("button", { type: "button", id: `newer-${part.name}`, disabled: part.newer === null,
      onclick: () => turn({ part: part.name, cursor: part.newer }) }, "Newer"),
    h("span", {}, part.total === null ? `${number(part.points.length)} points`
      : `${number(part.points.length)} of ${number(part.total)} points`),
    h("button", { type: "button", id: `older-${part.name}`, disabled: part.cursor === null,
      onclick: () => turn({ part: part.name, cursor: part.cursor }) }, "Older"));
}

function spoken(name) {
  return name.replaceAll("_", " ");
}
