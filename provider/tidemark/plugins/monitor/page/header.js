// The head of the page: what is looked at, and the way between streams and replications where there are any.

import { address, linkTo } from "./address.js";
import { h } from "./elements.js";
import { keepingFocus } from "./lists.js";

const VIEWS = [["streams", "Streams", {}], ["replications", "Replications", { view: "replications" }]];

export function drawHeader(where, view, replications) {
  document.getElementById("where").textContent = where;
  const views = document.getElementById("views");
  views.hidden = replications === 0 && view === "streams";
  keepingFocus(() => views.replaceChildren(...VIEWS.map(([name, words, wanted]) => h(
    "a", { id: `view-${name}`, href: linkTo(wanted, address.get("connection")), "aria-current": name === view ? "page" : null },
    words))));
}
