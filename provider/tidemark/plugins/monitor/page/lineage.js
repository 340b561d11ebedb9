// Lineage: tables and objects as a graph that is read from left to right. A click or Enter puts a node into its centre;
// arrow keys walk along edges, and up and down. The table below the graph says the same.

import { address, linkTo, turn } from "./address.js";
import { airflowLink, amount, badge, columns, fetchJson, h, moment, number, pairs, scroll, span, svg } from "./elements.js";
import { drawHeader } from "./header.js";
import { connections, isDrawn, keepingFocus } from "./lists.js";
import { Graph, layout } from "./vendor/dagre.mjs";

const MOST = 200;
const DEPTHS = [1, 2, 3, 4, 6, 8, 10];
const BADGES = { failed: "bad", warning: "warn", waiting: "note", ok: "good" };
const LETTER = 8.3; // of the name, which is bold
const NODE = { least: 130, most: 270, height: 46 };
const SOON = 2000;

const view = document.getElementById("view");
let known = new Map(); // what is typed → the id of the node
let placed = { key: "", width: 0, height: 0, nodes: new Map(), edges: [] };

export async function showLineage(signal) {
  const wish = {
    connection: address.get("connection"), object: address.get("object"), depth: address.get("depth") ?? 3, limit: MOST,
  };
  const found = await fetchJson("api/v1/lineage", wish, signal);
  draw(found);
  if (found.looked_at !== null || found.store === "absent") return;
  await new Promise((done) => setTimeout(done, SOON));
  if (signal.aborted || document.hidden) return;
  draw(await fetchJson("api/v1/lineage", wish, signal));
}

function draw(found) {
  drawHeader("lineage", "lineage", found.replications);
  if (!isDrawn({ ...found, now: null, looked_at: null }, "#lineage")) drawGraph(found);
  drawAge(found);
}

// What somebody reads, types or has opened stays where it is.
function drawGraph(found) {
  place(found);
  const open = view.querySelector("#edges")?.open ?? false;
  const before = view.querySelector("#lineage")?.parentElement;
  const stays = before?.dataset.centre === (found.centre ?? "") ? [before.scrollLeft, before.scrollTop] : null;
  keepingFocus(() => {
    if (!view.querySelector("#object")) view.replaceChildren(tools(found), h("div", { id: "found" }));
    offer(found);
    view.querySelector("#found").replaceChildren(...[summary(found), found.nodes.length ? graph(found) : nothingYet(found),
      found.edges.length ? edgesTable(found, open) : null].filter(Boolean));
  });
  show(found, stays);
}

function show(found, before) {
  const around = view.querySelector("#lineage")?.parentElement;
  if (!around) return;
  const centre = placed.nodes.get(found.centre);
  [around.scrollLeft, around.scrollTop] = before ?? (centre === undefined ? [0, 0]
    : [centre.x - around.clientWidth / 2, centre.y - around.clientHeight / 2]);
}

function tools(found) {
  const choice = h("input", { id: "object", list: "objects", size: 34, placeholder: "kind and name" });
  choice.addEventListener("change", () => turn({ object: known.get(choice.value) ?? typed(choice.value) }));
  const depth = h("select", { id: "depth" }, DEPTHS.map((count) => h("option", { value: count }, String(count))));
  depth.addEventListener("change", () => turn({ depth: depth.value }));
  return h("div", { id: "tools", role: "search" },
    h("label", {}, "Around ", choice), h("datalist", { id: "objects" }),
    h("label", {}, "Edges up and down ", depth),
    h("button", { type: "button", id: "all", onclick: () => turn({ object: "" }) }, "Show all"),
    connections(found));
}

// What can be chosen, and what is. The name of the centre is written when the centre changes: until then somebody types.
function offer(found) {
  known = new Map(found.nodes.map((node) => [spokenName(node), node.id]));
  const of = (selector) => view.querySelector(selector);
  const [choice, depth, chosen] = [of("#object"), of("#depth"), of("#connection")];
  of("#objects").replaceChildren(...[...known.keys()].map((name) => h("option", { value: name })));
  depth.parentElement.hidden = of("#all").hidden = !found.centre;
  depth.value = address.get("depth") ?? "3";
  if (chosen) chosen.value = found.connection;
  if (choice.dataset.centre === (found.centre ?? "")) return;
  choice.dataset.centre = found.centre ?? "";
  const centre = found.nodes.find((node) => node.id === found.centre);
  choice.value = centre ? spokenName(centre) : "";
}

// "stream orders" as well as "stream/orders"; a name alone is that of a table.
function typed(words) {
  const text = words.trim();
  if (text === "" || /^[a-z_]+\//.test(text)) return text;
  const [, kind, name] = /^([a-z_]+) (.+)$/.exec(text) ?? [null, "table", text];
  return `${kind}/${name}`;
}

function summary(found) {
  const centre = found.nodes.find((node) => node.id === found.centre);
  const counted = found.truncated
    ? `The nearest ${number(found.nodes.length)} of ${number(found.total)} tables and objects. Choose one to see its neighbours.`
    : `${number(found.total)} tables and objects.`;
  return h("section", { id: "centre" }, centre ? about(centre, found) : null,
    h("p", { class: "quiet" }, `${counted} `, h("span", { id: "age" })));
}

function drawAge(found) {
  view.querySelector("#age").replaceChildren(
    ...(found.looked_at === null ? ["Logs are being read."] : ["Logs were read ", moment(found.looked_at, found.now)]));
}

function about(node, found) {
  const connection = found.connections.length > 1 ? found.connection : "";
  return [
    h("h2", {}, node.state ? badge(BADGES[node.severity] ?? "note", spoken(node.state)) : null,
      h("span", { class: "quiet" }, spoken(node.kind)), " ",
      node.view ? h("a", { id: "own-view", href: linkTo(node.view, connection) }, node.name) : node.name),
    pairs([
      node.path ? ["Path", node.path] : null,
      node.owner ? ["DAG", airflowLink(`dags/${encodeURIComponent(node.owner)}`, node.owner)] : null,
      node.since ? ["Since", moment(node.since, found.now)] : null,
      node.state ? ["Lag", lag(node) ?? "–"] : null,
    ]),
  ];
}

function nothingYet(found) {
  return h("section", { id: "empty" }, h("h2", {}, "No object yet"),
    h("p", {}, found.store === "absent" ? `No task has used the connection ${found.connection} yet.`
      : `The connection ${found.connection} has no object.`),
    h("p", {}, airflowLink("dags", "To the DAGs")));
}

// The layout depends on names and edges alone, so a new lag moves nothing.
function place(found) {
  const edges = found.edges.map((edge) => ({ ...edge, words: lag(edge) }));
  const key = JSON.stringify([found.nodes.map((node) => [node.id, node.name, node.state]),
    edges.map((edge) => [edge.source, edge.target, edge.words !== null])]);
  if (key === placed.key) return;
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 46, edgesep: 8, marginx: 8, marginy: 8 });
  for (const node of found.nodes) graph.setNode(node.id, { width: widthOf(node), height: NODE.height });
  for (const edge of edges) {
    graph.setEdge(edge.source, edge.target, edge.words === null ? {} : { width: 84, height: 16, labelpos: "c" });
  }
  layout(graph);
  const { width, height } = graph.graph();
  placed = {
    key, width: width || 0, height: height || 0,
    nodes: new Map(found.nodes.map((node) => [node.id, graph.node(node.id)])),
    edges: edges.map((edge) => graph.edge(edge.source, edge.target)),
  };
}

function widthOf(node) {
  return Math.min(NODE.most, Math.max(NODE.least, LETTER * Math.max(node.name.length, below(node).length * 0.75) + 21));
}

function graph(found) {
  const label = found.centre ? "Lineage around the node in the middle" : "Lineage of all tables and objects";
  const first = found.centre ?? leftmost(found);
  const drawing = svg("svg", {
    id: "lineage", role: "group", "aria-label": label, width: Math.ceil(placed.width), height: Math.ceil(placed.height),
    viewBox: `0 0 ${Math.ceil(placed.width)} ${Math.ceil(placed.height)}`,
  },
  svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" },
    svg("path", { d: "M0,0L8,4L0,8Z" }))),
  svg("g", { "aria-hidden": "true" }, found.edges.map((edge, at) => edgeOf(edge, placed.edges[at]))),
  found.nodes.map((node) => nodeOf(node, found, node.id === first)));
  drawing.addEventListener("keydown", (event) => walk(event, found));
  const around = scroll("Graph, scrollable", drawing);
  around.dataset.centre = found.centre ?? "";
  around.classList.add("graph");
  return around;
}

function leftmost(found) {
  const at = ({ id }) => placed.nodes.get(id);
  return [...found.nodes].sort((one, other) => at(one).x - at(other).x || at(one).y - at(other).y)[0]?.id;
}

function edgeOf(edge, at) {
  const [first, ...rest] = at.points.map(({ x, y }) => `${Math.round(x)},${Math.round(y)}`);
  const words = lag(edge);
  return svg("g", { class: "edge" },
    svg("title", {}, [words, ...dags(edge)].filter(Boolean).join("; ")),
    svg("path", { d: `M${first}L${rest.join("L")}`, "marker-end": "url(#arrow)" }),
    words === null || at.x === undefined ? null
      : svg("text", { x: Math.round(at.x), y: Math.round(at.y) + 4, "text-anchor": "middle" }, words));
}

function nodeOf(node, found, first) {
  const { x, y, width, height } = placed.nodes.get(node.id);
  const connection = found.connections.length > 1 ? found.connection : "";
  const kind = node.kind === "table" ? "table" : BADGES[node.severity] ?? "note";
  const wanted = { view: "lineage", object: node.id, ...(address.has("depth") ? { depth: address.get("depth") } : {}) };
  const link = svg("a", {
    href: linkTo(wanted, connection), id: `node-${node.id}`, class: `node ${kind}${node.id === found.centre ? " centre" : ""}`,
    tabindex: first ? 0 : -1, "data-node": spokenName(node), "aria-label": told(node),
    "aria-current": node.id === found.centre ? "true" : null, onclick: (event) => centreOn(event, node),
    transform: `translate(${Math.round(x - width / 2)},${Math.round(y - height / 2)})`,
  },
  svg("title", {}, node.path ? `${node.name}\n${node.path}` : node.name),
  svg("rect", { width: Math.round(width), height, rx: 5 }),
  svg("text", { x: 10, y: 19, class: "name" }, clipped(node.name, width)),
  svg("text", { x: 10, y: 36, class: "below" }, below(node)));
  return link;
}

function centreOn(event, node) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  turn({ object: node.id });
}

// Left and right lead along edges, up and down to the next node in the same column.
function walk(event, found) {
  const here = event.target.closest?.("a.node")?.id.slice("node-".length);
  const step = here === undefined ? null : STEPS[event.key]?.(here, found);
  if (!step) return;
  event.preventDefault();
  for (const link of view.querySelectorAll("#lineage a.node")) link.setAttribute("tabindex", link.id === `node-${step}` ? 0 : -1);
  document.getElementById(`node-${step}`).focus();
}

const STEPS = {
  ArrowRight: (here, found) => nearest(here, found.edges.filter((edge) => edge.source === here).map((edge) => edge.target)),
  ArrowLeft: (here, found) => nearest(here, found.edges.filter((edge) => edge.target === here).map((edge) => edge.source)),
  ArrowDown: (here) => nearest(here, inColumn(here, (y, own) => y > own)),
  ArrowUp: (here) => nearest(here, inColumn(here, (y, own) => y < own)),
};

function inColumn(here, fits) {
  const own = placed.nodes.get(here);
  return [...placed.nodes].filter(([, at]) => at.rank === own.rank && fits(at.y, own.y)).map(([id]) => id);
}

function nearest(here, others) {
  const own = placed.nodes.get(here).y;
  const away = (id) => Math.abs(placed.nodes.get(id).y - own);
  return others.filter((id) => id !== here).sort((one, other) => away(one) - away(other))[0];
}

function edgesTable(found, open) {
  const names = new Map(found.nodes.map((node) => [node.id, spokenName(node)]));
  return h("details", { id: "edges", open },
    h("summary", {}, `The ${number(found.edges.length)} edges as a table`),
    scroll("Edges", h("table", {}, h("caption", { class: "aside" }, "Edges of the lineage"), columns(["From", "To", "DAG", "Lag"]),
      h("tbody", {}, found.edges.map((edge) => h("tr", { "data-edge": `${names.get(edge.source)} → ${names.get(edge.target)}` },
        h("th", { scope: "row" }, names.get(edge.source)), h("td", {}, names.get(edge.target)),
        h("td", {}, edge.owners.map((name) => h("div", {}, airflowLink(`dags/${encodeURIComponent(name)}`, name))), hidden(edge)),
        h("td", {}, lag(edge) ?? "–")))))));
}

function hidden(edge) {
  return edge.others > 0 ? h("span", { class: "quiet" }, dags({ ...edge, owners: [] })[0]) : null;
}

function dags(edge) {
  const more = edge.others === 0 ? [] : [`${number(edge.others)} ${edge.others === 1 ? "DAG" : "DAGs"} that you may not see, or that no longer exist`];
  return [...edge.owners.map((name) => `DAG ${name}`), ...more];
}

// null: there is none.
function lag(one) {
  if (!one.looked) return "not known yet";
  return amount(one) ?? (one.lag_seconds === null ? null : span(one.lag_seconds));
}

function told(node) {
  const words = node.state ? lag(node) : null;
  return [spokenName(node), node.state ? spoken(node.state) : null, words ? `lag ${words}` : null].filter(Boolean).join(", ");
}

function below(node) {
  return node.state ? `${spoken(node.kind)}, ${spoken(node.state)}` : spoken(node.kind);
}

function clipped(name, width) {
  const fits = Math.floor((width - 20) / LETTER);
  return name.length <= fits ? name : `…${name.slice(name.length - fits + 1)}`;
}

function spokenName(node) {
  return `${node.kind} ${node.name}`;
}

function spoken(name) {
  return name.replaceAll("_", " ").toLowerCase();
}
