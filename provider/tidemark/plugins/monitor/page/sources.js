// A source database as its catalog shows it: what can be replicated, what cannot, and how to fix it. Read once, not
// again and again: each look asks the database.

import { address, linkTo, offsetWish, turn } from "./address.js";
import { badge, columns, fetchJson, h, number, pairs, Refused, scroll, section } from "./elements.js";
import { drawHeader } from "./header.js";
import { keepingFocus, nothingFits, PAGE, pages, searchBox } from "./lists.js";

const view = document.getElementById("view");

// The way to a source that no replication has yet.
export function sourceBox() {
  const name = h("input", { id: "source", type: "text", maxlength: 200, placeholder: "connection of a database" });
  const look = () => {
    if (name.value.trim()) location.search = linkTo({ source: name.value.trim() }, address.get("connection"));
  };
  name.addEventListener("keydown", (event) => (event.key === "Enter" ? look() : null));
  return [
    h("label", { for: "source" }, "Source"), name,
    h("button", { type: "button", id: "discover", onclick: look }, "Discover"),
  ];
}

export async function showSource(signal) {
  const name = address.get("source");
  const wish = { search: address.get("search") ?? "", limit: PAGE, offset: offsetWish() };
  let found;
  try {
    found = await fetchJson(`api/v1/source/${encodeURIComponent(name)}`, wish, signal);
  } catch (error) {
    if (error.status !== 403) throw error;
    throw new Refused(403, "You may not see this source, since you lack the right to read assets or this connection.");
  }
  drawHeader(name, "replications", 1);
  keepingFocus(() => draw(found, wish));
}

function draw(found, wish) {
  if (!view.querySelector("#discovery")) view.replaceChildren(frame());
  const fill = (id, ...children) => view.querySelector(id).replaceChildren(...children.flat().filter(Boolean));
  fill("#facts", facts(found));
  fill("#problems", problems(found.problems) ?? h("p", { class: "quiet" }, "None of the server or the user."));
  const turning = () => pages(found, "table", "tables");
  if (found.total > 0) fill("#list", turning(), tables(found), turning());
  else fill("#list", wish.search ? nothingFits("table", "tables", showAll) : h("p", { class: "quiet" }, "No table."));
}

function frame() {
  return h(
    "article", { id: "discovery" },
    h("p", {}, h("a", { href: linkTo({ view: "replications" }, address.get("connection")), id: "back" }, "← All replications")),
    h("div", { id: "facts" }),
    section("Problems", h("div", { id: "problems" })),
    section("Tables", h("div", { id: "tools", role: "search" }, searchBox("schema or table")), h("div", { id: "list" })),
  );
}

function showAll() {
  view.replaceChildren();
  turn({ search: "", offset: 0 });
}

function facts(found) {
  return pairs([
    ["Source", `${found.connection}, ${found.kind}`],
    ["Database", h("code", {}, found.database)],
    ["Databases", found.databases.join(", ")],
    ["Schemas", found.schemas.join(", ")],
    ["Tables", `${number(found.fitting)} of ${number(found.found)} can be replicated`],
    ["Ready", found.ready ? badge("good", "yes") : badge("bad", "no")],
  ]);
}

function problems(texts) {
  return texts.length === 0 ? null
    : h("ul", { class: "alerts" }, texts.map((words) => h("li", {}, words)));
}

function tables(found) {
  return scroll("Tables",
    h("table", { id: "tables" },
      h("caption", { class: "aside" }, "Tables, those that cannot be replicated first"),
      columns(["Table", "Fits", "Rows", "Key", "Target", "Columns"]),
      h("tbody", {}, found.tables.map((one) => h("tr", { "data-table": one.name },
        h("th", { scope: "row" }, one.name),
        h("td", {}, one.fits ? badge("good", "yes") : [badge("bad", "no"), problems(one.problems)],
          one.notices.map((words) => h("span", { class: "exact" }, words))),
        h("td", { class: "number" }, number(one.rows)),
        h("td", {}, one.columns.filter((column) => column.key).map((column) => column.name).join(", ") || "–"),
        h("td", {}, one.mode.replace("_", "-")),
        h("td", {}, columnsOf(one)))))));
}

function columnsOf(one) {
  return h("details", {},
    h("summary", {}, `${number(one.columns.length)} columns`),
    h("ul", {}, one.columns.map((column) => h("li", {},
      h("code", {}, column.name), ` ${column.native} → ${column.unified}, ${column.delta}`,
      column.nullable ? null : ", not null"))));
}
