// What lists have in common: search, connections, pages, and a focus that stays.

import { address, linkTo, turn } from "./address.js";
import { fetchJson, h, moment, number } from "./elements.js";

export const PAGE = 50;

export function searchBox(placeholder) {
  const search = h("input", {
    id: "search", type: "search", value: address.get("search") ?? "", maxlength: 200, placeholder,
  });
  let waiting = null;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => turn({ search: search.value.trim(), offset: 0, cursor: "" }), 250);
  });
  return [h("label", { for: "search" }, "Search"), search];
}

export function connections(found) {
  if (found.connections.length < 2) return null;
  const choice = h("select", { id: "connection" }, found.connections.map((name) => h("option", {}, name)));
  choice.value = found.connection;
  choice.addEventListener("change", () => turn({ connection: choice.value, offset: 0, cursor: "", acts: "", object: "" }));
  return h("label", {}, "Connection ", choice);
}

export function kinds() {
  const choice = h("select", { id: "kind" });
  choice.addEventListener("change", () => turn({ kind: choice.value, offset: 0, cursor: "" }));
  return h("label", {}, "Kind ", choice);
}

// Kinds come, go and grow; that of the address is among them. A choice that is open closes if it is filled anew, so the same
// kinds stay. `named`: words by kind.
export function offerKinds(named) {
  const choice = document.getElementById("kind");
  const here = address.get("kind") ?? "";
  const offered = { "": "every kind", ...named };
  offered[here] ??= here.replaceAll("_", " ");
  const words = JSON.stringify(offered);
  if (choice.dataset.kinds !== words) {
    choice.dataset.kinds = words;
    choice.replaceChildren(...Object.entries(offered).map(([name, text]) => h("option", { value: name }, text)));
  }
  choice.value = here;
}

export function pages(found, one, many) {
  const last = Math.min(found.offset + found.limit, found.total);
  const step = (words, offset, possible) =>
    h("button", { type: "button", disabled: !possible, onclick: () => turn({ offset }) }, words);
  return h(
    "nav", { class: "pages", "aria-label": "Pages" },
    step("Previous", Math.max(0, found.offset - found.limit), found.offset > 0),
    h("span", {}, found.offset < found.total
      ? `${number(found.offset + 1)}–${number(last)} of ${number(found.total)} ${many}` : `past the last ${one}`),
    step("Next", found.offset + found.limit, last < found.total && found.offset < found.total),
  );
}

// What an object has done and taken, beside where it stands. `uid`: of one whose name another object may have, too.
export function historyLink(kind, name, connection, uid = name) {
  const href = linkTo({ history: uid, kind }, connection);
  return h("span", { class: "exact" }, h("a", { href, "aria-label": `History of ${kind.replaceAll("_", " ")} ${name}` }, "History"));
}

// The caption of a table that has the newest entries of a part of a history, with the way to all of them.
export function newestOf(kind, name, part, words, connection) {
  const href = linkTo({ history: name, kind, part }, connection);
  return [`${words}. `, h("a", { id: `older-${part}`, href }, "All of them")];
}

export function nothingFits(one, many, all) {
  return h("section", { id: "empty" }, h("h2", {}, `No ${one} fits`),
    h("button", { type: "button", onclick: all }, `Show all ${many}`));
}

const SOON = [500, 1500, 3000];

// The server waits for no log. What it has not looked at yet is asked for again soon, a few times.
export async function fetchLooked(path, wish, signal, draw, missing) {
  let found = await fetchJson(path, wish, signal);
  await draw(found, wish);
  for (const after of SOON) {
    if (!missing(found) || document.hidden) return;
    await new Promise((done) => setTimeout(done, after));
    if (signal.aborted || document.hidden) return;
    found = await fetchJson(path, wish, signal);
    await draw(found, wish);
  }
}

// When the logs of a list were looked at; nothing for a list without logs.
export function looked(found) {
  if (found.looked_at === null && !found.not_looked_at) return null;
  return h("p", { class: "quiet", id: "looked" },
    found.looked_at === null ? "Logs are being read." : ["Logs were read ", moment(found.looked_at, found.now)],
    found.not_looked_at > 0 ? ` ${number(found.not_looked_at)} of this page have not answered yet.` : "");
}

// What is drawn anew takes the focus back: by its id, else as what has the same name and address. A table has another text
// each minute, and the same name. Tables stay where they were moved sideways.
export function keepingFocus(draw) {
  const before = document.activeElement;
  const same = (one) => [one.tagName, one.getAttribute("href"), one.getAttribute("aria-label") ?? one.textContent].join(" ");
  const alike = () => [...document.querySelectorAll(`#views ${before.tagName}, #view ${before.tagName}`)]
    .filter((one) => same(one) === words);
  const words = before && before !== document.body ? same(before) : null;
  const place = words === null ? -1 : alike().indexOf(before);
  const sideways = [...document.querySelectorAll("#view .scroll")].map((one) => one.scrollLeft);
  draw();
  document.querySelectorAll("#view .scroll").forEach((one, number) => { one.scrollLeft = sideways[number] ?? 0; });
  if (words === null || before.isConnected) return;
  const after = before.id ? document.getElementById(before.id) : place < 0 ? null : alike()[place];
  after?.focus({ preventScroll: true });
}

// The same for a view with details: those that are open stay open, by their ids. What is made when they are opened is made
// at once, for the focus and the place that it had; the browser's own event comes later.
export function keepingOpen(draw) {
  const open = new Set([...document.querySelectorAll("#view details[open]")].map((one) => one.id));
  keepingFocus(() => {
    draw();
    for (const one of document.querySelectorAll("#view details[id]")) {
      one.open = open.has(one.id);
      if (one.open) one.dispatchEvent(new Event("toggle"));
    }
  });
}

let drawn = "";
const AGES = { lag_seconds: 1, hours_left: 3600 }; // in seconds

// Whether the same answer is on the page already, below the element of that selector: what somebody reads, has selected or
// has opened there stays. Lags and hours that are left count by the minute: they change with the clock alone.
export function isDrawn(answer, selector) {
  const words = JSON.stringify(answer, (name, value) =>
    (typeof value === "number" && Object.hasOwn(AGES, name) ? Math.floor((value * AGES[name]) / 60) : value));
  const same = words === drawn && document.querySelector(selector) !== null;
  drawn = words;
  return same;
}

// The answer with its times to the minute: ages are told anew each minute.
export function toTheMinute(found) {
  const minute = Math.floor(new Date(found.now) / 60000);
  return { ...found, now: minute, looked_at: found.looked_at && minute };
}

// A column's heading; a click sorts by it, or turns the order round. It counts from the address as it is by then: the
// table of the last click may still be on its way.
export function heading(words, sort, wish, wishNow) {
  if (sort === null) return h("th", { scope: "col" }, words);
  const here = wish.sort === sort;
  const down = Boolean(wish.descending);
  return h(
    "th", { scope: "col", "aria-sort": here ? (down ? "descending" : "ascending") : "none" },
    h("button", { type: "button", id: `by-${sort}`, onclick: () => turn(sortedBy(sort, wishNow())) }, words,
      h("span", { "aria-hidden": "true" }, here ? (down ? " ↓" : " ↑") : "")),
  );
}

function sortedBy(sort, wish) {
  return { sort, descending: wish.sort === sort && !wish.descending ? "true" : "", offset: 0 };
}
