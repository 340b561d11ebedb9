// Acts on an object: a button for each that it is offered, a question that says what is lost, and a reason.

import { refreshNow } from "./address.js";
import { command } from "./copying.js";
import { columns, h, moment, scroll, section } from "./elements.js";

export function actButtons(one, found) {
  if (one.acts.length === 0) return null;
  if (!one.acts.some((act) => act.allowed)) {
    return h("details", { id: `acts-${one.uid}` },
      h("summary", {}, "Acts for those who may edit its DAG"),
      one.acts.map((act) => [h("p", {}, `${act.words}. `, h("span", { class: "quiet" }, act.loses)), command(act.command)]).flat());
  }
  return h("p", { class: "acts" }, one.acts.map((act) =>
    h("button", { type: "button", id: `act-${act.name}-${one.uid}`, onclick: () => ask(one, act, found) }, act.words)));
}

function ask(one, act, found) {
  const why = h("textarea", { id: "why", rows: 3, maxlength: 1000, required: true, "aria-describedby": "act-loses" });
  const trouble = h("p", { id: "act-trouble", role: "alert", class: "bad" });
  const yes = h("button", { type: "submit", id: "act-yes", class: "danger" }, act.words);
  const form = h("form", { method: "dialog", novalidate: true },
    h("h2", { id: "act-title" }, `${act.words}: ${one.name}`),
    h("p", { id: "act-loses" }, h("strong", {}, "Lost: "), act.loses),
    h("p", {}, h("label", { for: "why" }, "Why? The history keeps it."), why),
    trouble,
    h("p", { class: "acts" }, yes, h("button", { type: "button", id: "act-no", onclick: () => dialog.close() }, "Do nothing")),
    h("details", {}, h("summary", {}, "The same on the command line"), command(act.command)));
  const dialog = h("dialog", { "aria-labelledby": "act-title" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!why.value.trim()) {
      trouble.textContent = "Give a reason.";
      why.focus();
      return;
    }
    yes.disabled = true;
    const refused = await sent(one, act, why.value, found.connection);
    yes.disabled = false;
    if (refused === null) dialog.close();
    else trouble.textContent = refused;
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    document.getElementById(`act-${act.name}-${one.uid}`)?.focus();
    refreshNow();
  });
  document.body.append(dialog);
  dialog.showModal();
  why.focus();
}

// Null if it is done, else why not.
async function sent(one, act, why, connection) {
  const parts = ["api/v1/objects", one.kind, one.uid, "acts", act.name].map((part, i) => (i === 0 ? part : encodeURIComponent(part)));
  let answer;
  try {
    answer = await fetch(`${parts.join("/")}?${new URLSearchParams({ connection })}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ revision: one.revision, why }),
    });
  } catch {
    return "Airflow's API server does not answer. Whether it was done stands in the history below.";
  }
  if (answer.ok) return null;
  if (answer.status === 401) return "You are not logged in any more. Log in to Airflow and open this page again.";
  try {
    const { detail } = await answer.json();
    if (typeof detail === "string") return detail;
  } catch {
    // not ours: a proxy's page, for one
  }
  return `Airflow's API server answered ${answer.status}. Its log says why.`;
}

export function newestActs(history) {
  if (history.acts.length === 0) return null;
  return section("Newest acts", scroll("Newest acts",
    h("table", { id: "acts" },
      h("caption", { class: "aside" }, "Newest acts of persons on this page"),
      columns(["When", "Act", "Object", "Who", "Why"]),
      h("tbody", {}, history.acts.map((one) => h("tr", {},
        h("td", {}, moment(one.done_at, history.now)),
        h("td", {}, one.act),
        h("th", { scope: "row" }, `${one.kind.replaceAll("_", " ")} ${one.name}`),
        h("td", {}, one.who),
        h("td", {}, one.why)))))));
}
