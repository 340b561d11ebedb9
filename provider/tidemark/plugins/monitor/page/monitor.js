// The page: what needs attention, unless the address asks for objects, streams, replications or one of them; read anew
// every ten seconds while it is seen.

import { address, linkTo, whenTurned } from "./address.js";
import { followTheme, h, say } from "./elements.js";
import { showLineage } from "./lineage.js";
import { showObjects } from "./objects.js";
import { showOverview } from "./overview.js";
import { showReplication, showReplications } from "./replications.js";
import { showRun } from "./runs.js";
import { showSource } from "./sources.js";
import { showStream, showStreams } from "./streams.js";

const EVERY = 10_000;

const view = document.getElementById("view");
const trouble = document.getElementById("trouble");
const refreshed = document.getElementById("refreshed");
let asking = null;
let timer = null;

// The modules of charts come with the first history that is looked at.
async function showHistory(signal) {
  await (await import("./history.js")).showHistory(signal);
}

function shown() {
  if (address.get("history")) return showHistory;
  if (address.get("view") === "run") return showRun;
  if (address.has("stream") || address.has("dag_id")) return showStream;
  if (address.get("source")) return showSource;
  if (address.get("replication")) return showReplication;
  if (address.get("view") === "objects") return showObjects;
  if (address.get("view") === "streams") return showStreams;
  if (address.get("view") === "lineage") return showLineage;
  if (address.get("view") === "replications") return showReplications;
  return showOverview; // for "overview", and for the address without a question
}

const WHOLE = new Map([
  [showHistory, ["objects", "All objects"]], [showObjects, ["objects", "All objects"]],
  [showLineage, ["lineage", "The whole lineage"]], [showOverview, ["overview", "Overview"]],
  [showReplication, ["replications", "All replications"]], [showReplications, ["replications", "All replications"]],
  [showSource, ["replications", "All replications"]],
]);

// The way to what there is. The connection may be what there is not.
function waysOut() {
  const [view, words] = WHOLE.get(shown()) ?? ["streams", "All streams"];
  const connection = address.get("connection");
  return h("p", {}, h("a", { href: linkTo({ view }, connection) }, words), connection
    ? [" ", h("a", { id: "without-connection", href: linkTo({ view }) }, `${words} without the connection ${connection}`)] : null);
}

// A source is a database of others, which is asked once.
function again() {
  return shown() !== showSource;
}

async function refresh() {
  clearTimeout(timer);
  asking?.abort();
  const mine = (asking = new AbortController());
  try {
    await shown()(mine.signal);
    trouble.hidden = true;
    const often = again() ? `, refreshed every ${EVERY / 1000} s` : "";
    refreshed.textContent = `As of ${new Date().toISOString().slice(11, 19)} UTC${often}`;
  } catch (error) {
    if (error.name === "AbortError") return;
    trouble.hidden = false;
    say(trouble, error.message);
    if (!(error.status >= 0)) throw error;
    if ([401, 403, 404, 422].includes(error.status)) view.replaceChildren();
    if (error.status === 404 || error.status === 422) view.append(waysOut());
  } finally {
    if (mine === asking) {
      view.setAttribute("aria-busy", "false");
      timer = again() ? setTimeout(() => (document.hidden ? null : refresh()), EVERY) : null;
    }
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea") || document.querySelector("dialog[open]")) return;
  const search = document.getElementById("search");
  if (search) {
    event.preventDefault();
    search.focus();
  }
});
document.addEventListener("visibilitychange", () => (document.hidden || !again() ? null : refresh()));
whenTurned(refresh);
followTheme();
refresh();
