// The head of the page: what is looked at, and the way to the other views; replications where there are any.

import { address, linkTo } from "./address.js";
import { h } from "./elements.js";
import { keepingFocus } from "./lists.js";

const VIEWS = [
  ["overview", "Overview", { view: "overview" }],
  ["objects", "Objects", { view: "objects" }], ["streams", "Streams", { view: "streams" }],
  ["replications", "Replications", { view: "replications" }],
  ["lineage", "Lineage", { view: "lineage" }],
];

export function drawHeader(where, view, replications) {
  document.getElementById("where").textContent = where;
  document.title = `${where} · Tidemark`;
  const views = document.getElementById("views");
  views.hidden = false;
  const offered = VIEWS.filter(([name]) => name !== "replications" || replications > 0 || name === view);
  keepingFocus(() => views.replaceChildren(...offered.map(([name, words, wanted]) => h(
    "a", { id: `view-${name}`, href: linkTo(wanted, address.get("connection")), "aria-current": name === view ? "page" : null },
    words))));
}
