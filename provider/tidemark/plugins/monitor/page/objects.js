// All objects, whichever subject they belong to: one list, the worst first, each with the way to its own view.

import { address, linkTo, offsetWish, turn } from "./address.js";
import { airflowLink, amount, badge, h, moment, number, scroll, span } from "./elements.js";
import { drawHeader } from "./header.js";
import { connections, fetchLooked, heading, historyLink, isDrawn, keepingFocus, kinds, looked, nothingFits, offerKinds, PAGE, pages, searchBox, toTheMinute } from "./lists.js";

const COLUMNS = [
  ["State", "state"], ["Kind", "kind"], ["Object", "name"], ["Since", "since"], ["Lag", null], ["Owner", null],
  ["Problem", null],
];
const BADGES = { failed: "bad", warning: "warn", waiting: "note", ok: "good" };

const view = document.getElementById("view");

function listWish() {
  return {
    connection: address.get("connection"),
    kind: address.get("kind"),
    search: address.get("search") ?? "",
    problems: address.get("problems") === "true" ? "true" : "",
    sort: address.get("sort") ?? "state",
    descending: address.get("descending") === "true" ? "true" : "",
    offset: offsetWish(),
    limit: PAGE,
  };
}

export async function showObjects(signal) {
  const wish = listWish();
  await fetchLooked("api/v1/objects", wish, signal, draw, (found) => found.not_looked_at > 0);
}

function draw(found, wish) {
  drawHeader("objects", "objects", found.kinds.replication ?? 0);
  if (isDrawn([toTheMinute(found), wish], "#list > *")) return;
  keepingFocus(() => {
    if (!view.querySelector("#problems")) view.replaceChildren(tools(found), h("div", { id: "list" }));
    offerKinds(Object.fromEntries(Object.entries(found.kinds).map(([name, count]) => [name, `${spoken(name)} (${number(count)})`])));
    const list = view.querySelector("#list");
    const asked = wish.search || wish.problems || wish.kind;
    if (found.total === 0) list.replaceChildren(asked ? nothingFits("object", "objects", showAll) : nothingYet(found));
    else list.replaceChildren(pages(found, "object", "objects"), table(found, wish), pages(found, "object", "objects"), looked(found) ?? "");
  });
}

function showAll() {
  view.replaceChildren();
  turn({ search: "", problems: "", kind: "", offset: 0 });
}

function tools(found) {
  const problems = h("input", { id: "problems", type: "checkbox" });
  problems.checked = address.get("problems") === "true";
  problems.addEventListener("change", () => turn({ problems: problems.checked, offset: 0 }));
  return h(
    "div", { id: "tools", role: "search" },
    searchBox("name"),
    kinds(),
    h("label", {}, problems, " only with a problem"),
    connections(found),
  );
}

function nothingYet(found) {
  return h(
    "section", { id: "empty" },
    h("h2", {}, "No object yet"),
    h("p", {}, found.store === "absent" ? `No task has used the connection ${found.connection} yet.`
      : `The connection ${found.connection} has no object.`),
    h("p", {}, airflowLink("dags", "To the DAGs")),
  );
}

function table(found, wish) {
  return scroll("Objects",
    h("table", {},
      h("caption", { class: "aside" }, "Objects of every kind with their states"),
      h("thead", {}, h("tr", {}, COLUMNS.map(([words, sort]) => heading(words, sort, wish, listWish)))),
      h("tbody", {}, found.objects.map((one) => row(one, found)))));
}

function row(one, found) {
  const connection = found.connections.length > 1 ? found.connection : "";
  const name = one.view ? h("a", { href: linkTo(one.view, connection), id: `object-${one.uid}` }, one.name) : one.name;
  return h(
    "tr", { "data-any-object": `${one.kind} ${one.name}` },
    h("td", {}, badge(BADGES[one.severity] ?? "note", spoken(one.state))),
    h("td", {}, spoken(one.kind)),
    h("th", { scope: "row" }, name, historyLink(one.kind, one.name, connection, one.uid)),
    h("td", {}, moment(one.since, found.now)),
    h("td", {}, lag(one)),
    h("td", {}, one.owner ? airflowLink(`dags/${encodeURIComponent(one.owner)}`, one.owner) : "–"),
    h("td", { class: "clipped" }, one.problem ? h("span", { class: "words", title: one.problem }, one.problem) : "–"),
  );
}

function lag(one) {
  const counted = amount(one);
  return [one.lag_seconds === null ? "–" : span(one.lag_seconds),
    counted === null ? null : h("span", { class: "exact" }, counted)];
}

function spoken(name) {
  return name.replaceAll("_", " ");
}
