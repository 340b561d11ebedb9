// Partitions over time: a bar for each life, at the middle of its keys, as wide as its load; lines lead to children.

import { EDGE, HEIGHT, mark, round, timeAxis, timeScale, told, walkable, written } from "./charts.js";
import { h, number, svg, utc } from "./elements.js";
import { scaleLinear, scaleSqrt } from "./vendor/d3-scale.mjs";

const STATES = {
  active: "s0", ended: "s3", created: "s3", scheduled: "s1", running: "s1", ready: "s0", finished: "s2", failed: "bad",
};
const THIN = 5;
const WIDE = 34;

// What draws the tree of a chart, and hands back what the colours mean.
export function tree(now) {
  return (id, points, said) => {
    const until = (one) => new Date(one.end ?? now);
    const x = timeScale(points.flatMap((one) => [new Date(one.at), until(one)]));
    const y = scaleLinear([0, Math.max(...points.map(({ hi }) => hi))], [EDGE.top + 4, HEIGHT - EDGE.bottom - 4]);
    const wide = scaleSqrt([0, Math.max(1, ...points.map(({ rows }) => rows))], [THIN, WIDE]);
    const lives = points.map((one) => life(id, one, x(new Date(one.at)), x(until(one)), y, wide));
    walkable(lives, said);
    return [svg("g", { class: "axes", "aria-hidden": "true" }, timeAxis(x), written(EDGE.left - 8, EDGE.top + 14, "end", "keys from 0"),
      written(EDGE.left - 8, HEIGHT - EDGE.bottom - 4, "end", "to the last")), links(points, x, y, until), lives];
  };
}

export function states(points) {
  const there = [...new Set(points.map(({ state }) => state))].sort();
  return h("ul", { class: "legend" }, there.map((state) => h("li", {},
    svg("svg", { class: "key", viewBox: "0 0 16 16", "aria-hidden": "true" },
      svg("rect", { class: `series ${STATES[state] ?? "s3"}`, x: 1, y: 4, width: 14, height: 8 })), state)));
}

function life(id, one, from, to, y, wide) {
  const room = Math.max(2, y(one.hi) - y(one.lo) - 1);
  const tall = Math.min(room, wide(one.rows));
  const end = one.end === null ? "now" : utc(one.end);
  const label = `Partition ${one.token}, keys ${number(one.lo)} to ${number(one.hi - 1)}, ${one.state}, ${told(one.rows, "rows")}, `
    + `${utc(one.at)} to ${end}, ${number(one.parents.length)} parents, ${number(one.children.length)} children`;
  return mark(`${id}-${one.token}`, label, new Date(one.at).getTime(), middle(one), svg("rect", {
    class: `series ${STATES[one.state] ?? "s3"}`, x: round(from), y: round(y(middle(one)) - tall / 2),
    width: round(Math.max(2, to - from - 1)), height: round(tall),
  }));
}

function links(points, x, y, until) {
  const of = new Map(points.map((one) => [one.token, one]));
  const pairs = points.flatMap((child) => child.parents.map((token) => [of.get(token), child])).filter(([parent]) => parent);
  return svg("g", { class: "links", "aria-hidden": "true" }, pairs.map(([parent, child]) => svg("line", {
    x1: round(x(until(parent))), y1: round(y(middle(parent))), x2: round(x(new Date(child.at))), y2: round(y(middle(child))),
  })));
}

function middle(one) {
  return (one.lo + one.hi) / 2;
}
