// Charts of a history as SVG: lines, steps and bars over time. Each has a title, a description, its table, and points
// that are walked by arrow keys and said by screen readers.

import { bytes, columns, h, number, scroll, svg, utc, who } from "./elements.js";
import { format, precisionRound } from "./vendor/d3-format.mjs";
import { scaleLinear, scaleUtc } from "./vendor/d3-scale.mjs";
import { curveLinear, curveStepAfter, line, symbol, symbolCircle, symbolSquare, symbolTriangle } from "./vendor/d3-shape.mjs";
import { utcDay, utcMinute } from "./vendor/d3-time.mjs";
import { utcFormat } from "./vendor/d3-time-format.mjs";

export const WIDTH = 640;
export const HEIGHT = 240;
export const EDGE = { left: 74, right: 18, top: 14, bottom: 30 };

const SYMBOLS = [symbolCircle, symbolSquare, symbolTriangle];
const THICK = 42; // square pixels of a point
const FEW = 80; // more points are drawn smaller
const LETTER = 7; // of the texts at the axes

export function chart(part, one, drawn) {
  const fields = one.fields.map((name) => part.fields.find((field) => field.name === name));
  const points = [...part.points].reverse().filter((point) => fields.some(({ name }) => known(point[name])));
  if (points.length === 0) return null;
  const id = `chart-${part.name}-${one.name}`;
  const words = `${one.words} ${number(points.length)} ${points.length === 1 ? "point" : "points"}, the newest last.`;
  return figure(id, one, words, (said) => (one.shape === "tree" ? drawn(id, points, said) : plotted(id, one, fields, points, said)),
    fields.length > 1 && one.shape !== "tree" ? legend(fields) : null, table(id, one, fieldsOf(part, one, fields), part.points));
}

function fieldsOf(part, one, fields) {
  return one.shape === "tree" ? part.fields : [part.fields.find(({ name }) => name === "at"), ...fields];
}

function figure(id, one, words, draw, legendOf, tableOf) {
  const said = h("p", { class: "point-said", id: `${id}-said` }, "Press Tab for the newest point, and the arrow keys for the others.");
  return h("figure", { id, class: "chart" },
    h("h3", {}, one.title),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-desc` },
      svg("title", { id: `${id}-title` }, one.title), svg("desc", { id: `${id}-desc` }, words), [draw(said)].flat(Infinity).filter(Boolean)),
    legendOf, said, tableOf);
}

function legend(fields) {
  return h("ul", { class: "legend" }, fields.map(({ words }, i) => h("li", {},
    svg("svg", { class: "key", viewBox: "-8 -8 16 16", "aria-hidden": "true" }, shape(i, THICK)), words)));
}

function shape(i, size) {
  return svg("path", { class: `series s${i}`, d: symbol(SYMBOLS[i % SYMBOLS.length], size)() });
}

// A table is made when it is opened for the first time: it has as many rows as the chart has points.
export function table(id, one, fields, points) {
  const details = h("details", { id: `${id}-table` }, h("summary", {}, `Table: ${one.title}`));
  details.addEventListener("toggle", () => {
    if (details.open && !details.querySelector("table")) details.append(rows(one.title, fields, points));
  });
  return details;
}

export function rows(title, fields, points) {
  return scroll(title, h("table", {},
    h("caption", { class: "aside" }, title),
    columns(fields.map(({ words }) => words)),
    h("tbody", {}, points.map((point) => h("tr", {}, fields.map((field, i) =>
      i === 0 ? h("th", { scope: "row" }, cell(point[field.name], field.unit))
        : h("td", { class: NUMBERS.has(field.unit) ? "number" : "wrap" }, cell(point[field.name], field.unit))))))));
}

function plotted(id, one, fields, points, said) {
  const y = valueScale(one, fields, points);
  const values = measured(fields[0].unit, y.domain());
  const x = timeScale(points.map(({ at }) => new Date(at)), Math.max(EDGE.left, ...values.map(([, words]) => 8 + LETTER * words.length)));
  const marks = fields.map((field, i) => series(id, one, field, i, fields.length, points, x, y));
  walkable(marks.flat(), said);
  return [axes(x, y, values), one.shape === "bars" ? null : fields.map((field, i) => path(one, field, i, points, x, y)),
    marks.map((group) => svg("g", {}, group))];
}

function series(id, one, field, i, count, points, x, y) {
  const before = new Map(); // how many points have the time: the id of a mark stays while older points leave the chart
  return points.flatMap((point) => {
    const n = before.get(point.at) ?? 0;
    before.set(point.at, n + 1);
    if (!known(point[field.name])) return [];
    const at = new Date(point.at);
    const label = `${utc(point.at)}, ${field.words}: ${told(point[field.name], field.unit)}`;
    const drawn = one.shape === "bars" ? bar(i, count, points.length, x(at), y, point[field.name])
      : svg("g", { transform: `translate(${round(x(at))},${round(y(point[field.name]))})` }, shape(i, points.length > FEW ? THICK / 3 : THICK));
    return [mark(`${id}-${i}-${point.place ?? `${point.at}-${n}`}`, label, at.getTime(), i, drawn)];
  });
}

function bar(i, count, points, middle, y, value) {
  const wide = Math.max(1.5, Math.min(14, (WIDTH - EDGE.left - EDGE.right) / points / count / 1.6));
  const top = y(value);
  return svg("rect", { class: `series s${i}`, x: round(middle + (i - count / 2) * wide), y: round(Math.min(top, y(0) - 1)),
    width: round(wide), height: round(Math.max(1, y(0) - top)) });
}

function path(one, field, i, points, x, y) {
  const drawn = line().defined((point) => known(point[field.name])).x((point) => round(x(new Date(point.at))))
    .y((point) => round(y(point[field.name]))).curve(one.shape === "steps" ? curveStepAfter : curveLinear);
  return svg("path", { class: `line s${i}`, d: drawn(points), "aria-hidden": "true" });
}

// One stop of the tab key for a chart; arrow keys walk its points, and what they stand for is written below.
export function mark(id, label, time, row, drawn) {
  const one = svg("g", { id: `mark-${id}`, class: "mark", role: "img", tabindex: -1, "aria-label": label }, drawn);
  one.place = { time, row };
  return one;
}

export function walkable(marks, said) {
  const inTime = [...marks].sort((a, b) => a.place.row - b.place.row || a.place.time - b.place.time);
  const tell = (one) => (said.textContent = one.getAttribute("aria-label"));
  for (const one of marks) {
    one.addEventListener("focus", () => {
      for (const other of marks) other.setAttribute("tabindex", other === one ? 0 : -1);
      tell(one);
    });
    one.addEventListener("mouseenter", () => tell(one));
    one.addEventListener("click", () => one.focus());
    one.addEventListener("keydown", (event) => {
      const next = neighbour(inTime, one, event.key);
      if (next === undefined) return;
      event.preventDefault();
      next.focus();
    });
  }
  const newest = inTime.filter(({ place }) => place.row === inTime[0].place.row).at(-1);
  newest?.setAttribute("tabindex", 0);
}

function neighbour(marks, one, key) {
  const row = marks.filter(({ place }) => place.row === one.place.row);
  const here = row.indexOf(one);
  if (key === "ArrowRight") return row[here + 1] ?? one;
  if (key === "ArrowLeft") return row[here - 1] ?? one;
  if (key === "Home") return row[0];
  if (key === "End") return row.at(-1);
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const ordered = [...new Set(marks.map(({ place }) => place.row))];
  const wanted = ordered[ordered.indexOf(one.place.row) + (key === "ArrowDown" ? 1 : -1)];
  if (wanted === undefined) return one;
  return nearest(marks.filter(({ place }) => place.row === wanted), one.place.time);
}

function nearest(marks, time) {
  return marks.reduce((best, one) => (Math.abs(one.place.time - time) < Math.abs(best.place.time - time) ? one : best));
}

// `left`: of the chart, whose values are written before it.
export function timeScale(times, left = EDGE.left) {
  const first = new Date(Math.min(...times));
  const last = new Date(Math.max(...times));
  const domain = first.getTime() === last.getTime() ? [utcMinute.offset(first, -1), utcMinute.offset(last, 1)] : [first, last];
  return scaleUtc(domain, [left + 8, WIDTH - EDGE.right - 8]);
}

function valueScale(one, fields, points) {
  const values = points.flatMap((point) => fields.map(({ name }) => point[name]).filter(known));
  const low = one.shape === "steps" ? Math.min(...values) : Math.min(0, ...values);
  const high = Math.max(...values);
  return scaleLinear([low, high > low ? high : low + 1], [HEIGHT - EDGE.bottom, EDGE.top]).nice(4);
}

function axes(x, y, values) {
  const left = leftOf(x);
  return svg("g", { class: "axes", "aria-hidden": "true" },
    values.map(([value, words]) => [
      svg("line", { class: "grid", x1: left, x2: WIDTH - EDGE.right, y1: round(y(value)), y2: round(y(value)) }),
      written(left - 8, y(value) + 4, "end", words),
    ]).flat(), timeAxis(x));
}

function leftOf(x) {
  return x.range()[0] - 8;
}

const short = format(".3~s");

// The values of an axis with their words: all of them in one unit, and long numbers in short if that tells them apart.
function measured(unit, domain) {
  const [name, size] = unit === "seconds" ? (LONG.find(([, one]) => domain[1] >= 2 * one) ?? ["s", 1]) : ["", 1];
  const ticks = scaleLinear(domain.map((value) => value / size), [0, 1]).ticks(4).map((tick) => tick * size);
  const said = (words, values = ticks) => values.map((value) => [value, words(value)]);
  if (unit === "seconds") return said((value) => `${number(Math.round((value / size) * 100) / 100)} ${name}`);
  const whole = ticks.filter((tick) => Number.isInteger(tick) || !WHOLE.has(unit));
  if (unit === "bytes") return said(bytes, whole);
  const inShort = domain[1] >= 100_000 && precisionRound(whole[1] - whole[0], domain[1]) <= 3;
  return said(inShort ? short : number, whole);
}

export function timeAxis(x) {
  const ticks = x.ticks(4);
  const said = clock(ticks, x.domain());
  return [svg("line", { class: "axis", x1: leftOf(x), x2: WIDTH - EDGE.right, y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom }),
    ticks.map((tick) => [
      svg("line", { class: "axis", x1: round(x(tick)), x2: round(x(tick)), y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom + 5 }),
      written(x(tick), HEIGHT - 8, "middle", said(tick)),
    ]).flat()].flat();
}

// Times of 24 hours in UTC; the day where more than one is shown, and it alone where each tick begins one.
function clock(ticks, [first, last]) {
  if (ticks.every((tick) => utcDay.floor(tick).getTime() === tick.getTime())) return utcFormat("%b %-d, %Y");
  const time = ticks.some((tick) => tick % 60_000 !== 0) ? "%H:%M:%S" : "%H:%M";
  return utcFormat(utcDay.floor(first) < utcDay.floor(last) ? `%b %-d ${time}` : time);
}

export function written(x, y, anchor, words) {
  return svg("text", { x: round(x), y: round(y), "text-anchor": anchor }, words);
}

export function round(value) {
  return Math.round(value * 10) / 10;
}

const NUMBERS = new Set(["number", "version", "rows", "bytes", "seconds"]);
const WHOLE = new Set(["version", "rows", "bytes"]);

function known(value) {
  return value !== null && value !== undefined;
}

// A value in words, as the page writes its unit.
export function told(value, unit) {
  if (!known(value)) return "–";
  if (unit === "time") return utc(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "seconds") return seconds(value);
  if (unit === "rows") return `${number(value)} ${value === 1 ? "row" : "rows"}`;
  if (unit === "texts") return value.join(", ") || "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? number(value) : String(value);
}

function cell(value, unit) {
  if (unit === "run" && known(value)) return who(value);
  if (unit === "time" && known(value)) return h("time", { datetime: value, class: "time" }, utc(value));
  if (unit === "rows" && known(value)) return number(value);
  return told(value, unit);
}

const LONG = [["d", 86400], ["h", 3600], ["min", 60]];

function seconds(value) {
  const fits = LONG.find(([, size]) => value >= 2 * size);
  if (fits) return `${number(round(value / fits[1]))} ${fits[0]}`;
  return `${number(value < 10 ? Math.round(value * 100) / 100 : round(value))} s`;
}
