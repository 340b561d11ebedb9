// How things are drawn: elements, times, who did something, links into Airflow. Texts are set as text, never as markup.

import { fetchAnswer } from "./answers.js";

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Times come as ISO 8601 in UTC.
export function utc(iso) {
  return new Date(iso).toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

const STEPS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const first = STEPS.findIndex(([, size]) => whole >= size);
  if (first < 0) return "0 s";
  const [unit, size] = STEPS[first];
  const next = STEPS[first + 1];
  const rest = next ? Math.floor((whole % size) / next[1]) : 0;
  return `${Math.floor(whole / size)} ${unit}` + (rest && Math.floor(whole / size) < 10 ? ` ${rest} ${next[0]}` : "");
}

export function moment(iso, now) {
  if (!iso) return "–";
  const seconds = (new Date(now) - new Date(iso)) / 1000;
  const words = seconds >= 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
  return h("time", { datetime: iso }, words, h("span", { class: "exact time" }, utc(iso)));
}

export function number(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

const SIZES = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];

export function bytes(count) {
  const fits = SIZES.find(([, size]) => count >= size);
  return fits ? `${(count / fits[1]).toFixed(1)} ${fits[0]}` : `${count} B`;
}

// What a lag counts beside its time: "1 version", "3.0 kB"; null: nothing.
export function amount(one) {
  if (one.lag_amount === null) return null;
  if (one.lag_unit === "bytes") return bytes(one.lag_amount);
  return `${number(one.lag_amount)} ${one.lag_amount === 1 ? one.lag_unit.replace(/s$/, "") : one.lag_unit}`;
}

// Airflow shows this page in a frame that may not lead its own window elsewhere; the window around it may.
export function airflowLink(path, ...children) {
  const target = new URL(`../${path}`, document.baseURI.split("?")[0]).href;
  return h("a", { href: target, class: "out", onclick: (event) => leave(event, target) }, ...children);
}

function leave(event, target) {
  if (window.parent === window) return;
  event.preventDefault();
  const around = window.parent.document;
  const link = around.createElement("a");
  link.href = target;
  if (event.ctrlKey || event.metaKey || event.shiftKey) link.target = "_blank";
  around.body.append(link);
  link.click();
  link.remove();
}

export function who(actor, { short = false } = {}) {
  if (actor.kind === "hidden") return h("span", { class: "quiet" }, "a DAG that you may not see, or that no longer exists");
  if (actor.kind === "client") return "a notebook or script";
  if (actor.kind === "person") return actor.said;
  const run = `dags/${encodeURIComponent(actor.dag_id)}/runs/${encodeURIComponent(actor.run_id)}`;
  const task = actor.task_id + (actor.map_index >= 0 ? `[${actor.map_index}]` : "");
  const attempt = actor.attempt ? `, attempt ${actor.attempt}` : "";
  const worker = actor.worker ? ` on ${actor.worker}` : "";
  return [
    airflowLink(run, actor.dag_id),
    h("span", { class: "exact" }, actor.run_id),
    short ? null : h("span", { class: "exact" }, `${task}${attempt}${worker}`),
  ];
}

export function badge(kind, words) {
  return h("span", { class: `badge ${kind}` }, words);
}

export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), ...children);
}

export function pairs(entries) {
  return h("dl", {}, entries.filter(Boolean).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function columns(names) {
  return h("thead", {}, h("tr", {}, names.map((words) => h("th", { scope: "col" }, words))));
}

// A wide table may be scrolled by itself, by keyboard as well.
export function scroll(label, ...children) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...children);
}

export function behind(lag) {
  if (lag.state !== "known") {
    return h("span", { class: `words ${lag.state === "waiting" ? "quiet" : "bad"}`, title: lag.words }, lag.words);
  }
  if (lag.behind === 0) return ["none", h("span", { class: "exact" }, `source at ${number(lag.head)}`)];
  const versions = `${number(lag.behind)} ${lag.behind === 1 ? "version" : "versions"}`;
  return [
    versions,
    h("span", { class: "exact" }, lag.lag_seconds === null ? `source at ${number(lag.head)}`
      : `for ${span(lag.lag_seconds)}, source at ${number(lag.head)}`),
  ];
}

export function failing(health) {
  if (health.failures_in_row === 0) return null;
  return health.failures_in_row === 1 ? "failed once" : `failed ${number(health.failures_in_row)} times in a row`;
}

// The one state of a stream, as the server tells it: the worst that holds.
const STATES = {
  stale: ["bad", "stale"], failing: ["bad", "failing"], unreadable: ["bad", "unreadable"],
  may_be_stale: ["bad", "may be stale"], nearly_stale: ["warn", "nearly stale"], unknown: ["note", "not known yet"],
  behind: ["note", "behind"], undelivered: ["note", "nothing delivered yet"], up_to_date: ["good", "up to date"],
};

export function stateOf(stream) {
  const [kind, words] = STATES[stream.state] ?? ["note", stream.state];
  if (stream.state === "failing") return badge(kind, failing(stream.health));
  const failed = failing(stream.health);
  return [badge(kind, words), failed ? h("span", { class: "exact" }, failed) : null];
}

export function staleIn(lag) {
  if (lag.state !== "known") return "–";
  if (lag.words) {
    return h("span", { class: "words", title: lag.words }, lag.words);
  }
  const until = h("span", { class: "exact time" }, utc(lag.stale_after));
  if (lag.stale) return ["passed", until];
  return [lag.hours_left >= 48 ? `${Math.floor(lag.hours_left / 24)} days` : span(lag.hours_left * 3600), until];
}

// Airflow's choice of colours, else the system's.
export function followTheme() {
  const own = document.documentElement;
  const apply = () => {
    const around = window.parent === window ? null : window.parent.document.documentElement.classList;
    own.classList.toggle("dark", Boolean(around?.contains("dark")));
    own.classList.toggle("light", Boolean(around?.contains("light")));
  };
  apply();
  if (window.parent !== window) {
    const observer = new MutationObserver(apply);
    observer.observe(window.parent.document.documentElement, { attributeFilter: ["class"] });
    window.addEventListener("pagehide", () => observer.disconnect()); // else Airflow's tab keeps each frame that it had
  }
}

// A live region is read out when it changes: the same words are not written again.
export function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

export async function fetchJson(path, parameters, signal) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  let told;
  try {
    told = await fetchAnswer(`${path}?${new URLSearchParams(given)}`, { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "Airflow's API server does not answer. This page tries again.");
  }
  if (told.ok) return told.found;
  throw new Refused(told.answer.status, await words(told.answer));
}

async function words(answer) {
  if (answer.status === 401) return "You are logged out. Log in to Airflow and open this page again.";
  let detail = null;
  try {
    detail = (await answer.json()).detail;
  } catch {
    // not ours: a proxy's page, for one
  }
  if (answer.status === 403 && (typeof detail !== "string" || detail === "Forbidden")) {
    return "You lack the right to read assets, so you may not see streams or replications. Ask your Airflow administrator.";
  }
  return saidBy(detail) ?? `Airflow's API server answered ${answer.status}. Its log says why.`;
}

// The words of a refusal. That of an argument names it, which its address or its form has. null: there are none.
export function saidBy(detail) {
  if (typeof detail === "string") return detail;
  if (!Array.isArray(detail)) return null;
  return detail.map(({ loc, msg }) => `${loc.slice(1).join(" ")}: ${msg}.`).join(" ");
}
