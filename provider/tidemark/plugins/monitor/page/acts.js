// Acts on an object: a button for each that it is offered, a form that says what is lost, its fields, and a reason.

import { drawn } from "./act_fields.js";
import { address, refreshNow, turn } from "./address.js";
import { command } from "./copying.js";
import { columns, fetchJson, h, moment, number, saidBy, say, scroll, section } from "./elements.js";

const ACTS = 10;

export function actButtons(one, found) {
  if (one.acts.length === 0) return null;
  if (!one.acts.some((act) => act.allowed)) {
    return h("details", { id: `acts-${one.uid}` },
      h("summary", {}, "Acts, for editors of its DAG"),
      one.acts.map((act) => [h("p", {}, `${act.words}. `, h("span", { class: "quiet" }, act.loses)), command(act.command)]).flat());
  }
  return h("p", { class: "acts" }, one.acts.map((act) =>
    h("button", { type: "button", id: `act-${act.name}-${one.uid}`, onclick: () => begin(one, act, found) }, act.words)));
}

// The acts of an object in any state; null if it lives no more.
export async function offersOf(kind, uid, connection, signal) {
  try {
    return await fetchJson(`api/v1/objects/${encodeURIComponent(kind)}/${encodeURIComponent(uid)}/acts`, { connection }, signal);
  } catch (refused) {
    if (refused.status === 404) return null;
    throw refused;
  }
}

// The choices are those of now. The revision stays that of the object as it was shown.
async function begin(one, act, found) {
  if (!act.fields.some((field) => field.type === "choice")) return ask(one, act, found);
  try {
    const offers = await offersOf(one.kind, one.uid, found.connection);
    const offered = offers?.acts.find(({ name }) => name === act.name);
    return offered ? ask(one, { ...act, fields: offered.fields }, found) : ask(one, unchosen(act), found, "It is no longer offered.");
  } catch (refused) {
    if (!(refused.status >= 0)) throw refused;
    return ask(one, unchosen(act), found, refused.message);
  }
}

function unchosen(act) {
  return { ...act, fields: act.fields.map((field) => ({ ...field, choices: null })) };
}

// `refused`: why its choices are not known.
function ask(one, act, found, refused = "") {
  if (document.querySelector("dialog[open]")) return; // of a double click
  const fields = drawn(act.fields);
  const why = h("textarea", { id: "why", rows: 3, maxlength: 1000, required: true, "aria-describedby": "act-loses" });
  let done = "";
  const trouble = h("p", { id: "act-trouble", role: "alert", class: "bad" }, refused);
  const yes = h("button", { type: "submit", id: "act-yes", class: "danger" }, act.words);
  const no = h("button", { type: "button", id: "act-no", onclick: () => dialog.close() }, "Cancel");
  const form = h("form", { method: "dialog", novalidate: true },
    h("h2", { id: "act-title" }, `${act.words}: ${one.name}`),
    h("p", { id: "act-loses" }, h("strong", {}, "Lost: "), act.loses),
    fields.elements,
    h("p", {}, h("label", { for: "why" }, "Why? The history keeps it."), why),
    trouble,
    h("p", { class: "acts" }, yes, no),
    h("details", {}, h("summary", {}, "On the command line"), command(act.command), options(act)));
  const dialog = h("dialog", { "aria-labelledby": "act-title", "aria-describedby": "act-loses" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!why.value.trim()) {
      trouble.textContent = "Give a reason.";
      why.focus();
      return;
    }
    sending(true);
    const refused = await sent(one, act, { why: why.value, values: fields.values() }, found.connection);
    sending(false);
    done = refused === null ? `${act.words}: ${one.name}. It is done.` : "";
    if (!dialog.isConnected) return told(done || `${act.words}: ${one.name}. ${refused.detail}`);
    if (done) return dialog.close();
    trouble.textContent = refused.detail;
    if (!fields.wrong(refused.fields ?? {})) yes.focus();
  });
  // What is sent is done, whether the form is open or not: it stays until the answer is there. A browser closes it at a
  // second Escape, or at the way back of a phone, without asking; keys can be kept from that.
  function sending(now) {
    yes.disabled = no.disabled = now;
    yes.textContent = now ? "Being done …" : act.words;
    if (now) document.addEventListener("keydown", staying, true);
    else document.removeEventListener("keydown", staying, true);
  }
  dialog.addEventListener("cancel", (event) => (no.disabled ? event.preventDefault() : null));
  dialog.addEventListener("close", () => {
    dialog.remove();
    told(done);
    if (!done) document.getElementById(`act-${act.name}-${one.uid}`)?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  (form.querySelector(".field input, .field select, .field textarea") ?? why).focus();
}

function staying(event) {
  if (event.key === "Escape") event.preventDefault();
}

// The outcome of an act, whose form is closed; no words: there is none.
function told(words) {
  const place = document.getElementById("done");
  say(place, words);
  if (words) place.focus();
  refreshNow();
}

function options(act) {
  if (act.fields.length === 0) return null;
  return h("ul", {}, act.fields.map((field) => h("li", {}, h("code", {}, field.option), ` ${field.label}`)));
}

// Null if it is done, else why not, and what is wrong with its fields.
async function sent(one, act, wish, connection) {
  const parts = ["api/v1/objects", one.kind, one.uid, "acts", act.name].map((part, i) => (i === 0 ? part : encodeURIComponent(part)));
  let answer;
  try {
    answer = await fetch(`${parts.join("/")}?${new URLSearchParams({ connection })}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ revision: one.revision, ...wish }),
    });
  } catch {
    return { detail: "Airflow's API server does not answer. The list of acts shows whether it was done." };
  }
  if (answer.ok) return null;
  if (answer.status === 401) return { detail: "You are logged out. Log in to Airflow and open this page again." };
  try {
    const { detail, fields } = await answer.json();
    if (saidBy(detail) !== null) return { detail: saidBy(detail), fields };
  } catch {
    // not ours: a proxy's page, for one
  }
  return { detail: `Airflow's API server answered ${answer.status}. Its log says why.` };
}

function chosen(one) {
  const parts = Object.entries(one.values).filter(([, value]) => value !== "" && value !== false && value.length !== 0);
  return parts.map(([name, value]) => `${name}: ${value === true ? "yes" : [value].flat().join(", ")}`).join("; ");
}

// A part of the acts on all objects or on one, as the address says; the newest ones without it.
export function actsPart(wish, signal) {
  return fetchJson("api/v1/acts", { ...wish, cursor: address.get("acts"), limit: ACTS }, signal);
}

export function shownActs(history) {
  const here = address.get("acts");
  if (history.acts.length === 0 && !here) return null;
  const title = here ? "Older acts" : "Newest acts";
  return section(title, history.acts.length === 0 ? h("p", { class: "quiet" }, "No older ones.") : actsTable(history, title),
    history.cursor === null && !here ? null : h("nav", { class: "pages", "aria-label": "Pages: acts" },
      h("button", { type: "button", id: "newest-acts", disabled: !here, onclick: () => turn({ acts: "" }) }, "Newest acts"),
      h("span", {}, `${number(history.acts.length)} ${history.acts.length === 1 ? "act" : "acts"}`),
      h("button", { type: "button", id: "older-acts", disabled: history.cursor === null,
        onclick: () => turn({ acts: history.cursor }) }, "Older")));
}

function actsTable(history, title) {
  return scroll(title,
    h("table", { id: "acts" },
      h("caption", { class: "aside" }, "Acts of users on this page, and by commands"),
      columns(["When", "Act", "Object", "Who", "Why"]),
      h("tbody", {}, history.acts.map((one) => h("tr", {},
        h("td", {}, moment(one.done_at, history.now)),
        h("td", {}, one.act, chosen(one) ? h("span", { class: "exact" }, chosen(one)) : null),
        h("th", { scope: "row" }, `${one.kind.replaceAll("_", " ")} ${one.name}`),
        h("td", {}, one.who, one.by === "command" && one.who ? h("span", { class: "exact" }, "operating-system user, by a command") : null),
        h("td", {}, one.why || h("span", { class: "quiet" }, "no reason given")))))));
}
