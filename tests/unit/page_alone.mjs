// The page's own modules without a browser: a document that holds nothing, a clock that is set by hand, a server that
// keeps the questions. Prints what was asked, as JSON.

const asked = [];
const timers = new Map();
const handlers = {};
const nothing = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === Symbol.iterator ? [][Symbol.iterator] : name === "textContent" ? "" : nothing),
  set: () => true,
  apply: () => nothing,
  has: () => true,
});

globalThis.window = globalThis;
globalThis.parent = globalThis;
globalThis.location = { search: process.argv[4], pathname: "/tidemark/" };
globalThis.history = { replaceState() {} };
globalThis.addEventListener = () => {};
globalThis.MutationObserver = class { observe() {} };
globalThis.document = new Proxy({ hidden: false }, {
  get: (own, name) => (name === "hidden" ? own.hidden : name === "baseURI" ? "http://airflow/tidemark/"
    : name === "addEventListener" ? (type, act) => (handlers[type] = act) : name === "activeElement" ? null
    : name === "querySelectorAll" ? () => [] : name === "querySelector" ? () => null : nothing),
});
let next = 1;
globalThis.setTimeout = (act, after) => (timers.set(next, [act, after]), next++);
globalThis.clearTimeout = (id) => timers.delete(id);

let now = Date.UTC(2026, 10, 27, 12);
let left = process.argv[3] === "looks" ? 2 : 0; // answers in which a log has not answered yet
const told = () => ({ now: new Date(now).toISOString(), looked_at: null, not_looked_at: left-- > 0 ? 1 : 0, connection: "c", connections: ["c"], store: "ready", replications: [], objects: [], kinds: {}, total: 0 });
globalThis.fetch = async (url, { headers }) => {
  const known = headers["If-None-Match"] ?? null;
  asked.push({ url, known });
  const times = JSON.stringify({ now: new Date(now).toISOString() });
  if (known && process.argv[3] !== "looks") return new Response(null, { status: 304, headers: { ETag: known, "Tidemark-Times": times } });
  return new Response(JSON.stringify(told()), { status: 200, headers: { ETag: 'W/"one"' } });
};

const settle = () => new Promise((done) => setImmediate(done));
async function pass() {
  for (let turn = 0; turn < 10; turn++) await settle();
}
async function fire(wanted = 10_000) {
  const [id, [act]] = [...timers].find(([, [, after]]) => after === wanted);
  timers.delete(id);
  act();
  await pass();
}

const page = process.argv[2];
if (process.argv[3] === "refreshes") {
  await import(`${page}/monitor.js`);
  await pass();
  const steps = [asked.length];
  await fire(); // seen
  steps.push(asked.length);
  hide(true);
  await fire(); // not seen: the timer runs out, and nothing is asked
  steps.push(asked.length, [...timers.values()].filter(([, after]) => after === 10_000).length);
  handlers.visibilitychange();
  await pass();
  steps.push(asked.length);
  hide(false);
  handlers.visibilitychange();
  await pass();
  steps.push(asked.length);
  console.log(JSON.stringify({ steps, asked }));
} else if (process.argv[3] === "looks") {
  await import(`${page}/monitor.js`);
  await pass();
  await fire(500);
  await fire(1500);
  console.log(JSON.stringify({ asked, timers: [...timers.values()].map(([, after]) => after) }));
} else if (process.argv[3] === "left") {
  const { showStream } = await import(`${page}/streams.js`);
  const left = new AbortController();
  const answer = globalThis.fetch;
  globalThis.fetch = async (...given) => (left.abort(), answer(...given)); // while the answer is on its way
  console.log(JSON.stringify(await showStream(left.signal).then(() => "drawn", (error) => error.name)));
} else if (process.argv[3] === "refused") {
  const { fetchJson } = await import(`${page}/elements.js`);
  const faults = [{ type: "less_than_equal", loc: ["query", "offset"], msg: "Input should be at most 10" }];
  globalThis.fetch = async () => new Response(JSON.stringify({ detail: faults }), { status: 422 });
  console.log(JSON.stringify(await fetchJson("api/v1/streams", {}).catch(({ message }) => message)));
} else if (process.argv[3] === "drawn") {
  const { isDrawn } = await import(`${page}/lists.js`);
  document = new Proxy(document, { get: (own, name) => (name === "querySelector" ? () => nothing : own[name]) });
  const ages = [[130, 5.01], [139.5, 5.008], [181, 5.008], [181, 4.99]];
  console.log(JSON.stringify(ages.map(([lag_seconds, hours_left]) => isDrawn({ rows: [{ lag_seconds, hours_left }] }, "#list"))));
} else {
  const { fetchAnswer } = await import(`${page}/answers.js`);
  const body = { now: "2026-11-27T12:00:00Z", rows: [{ lag_seconds: 10, hours_left: 2 }, { lag_seconds: 0, hours_left: null, name: "a" }], points: [{ lag_seconds: 5 }] };
  globalThis.fetch = async (url, { headers }) => headers["If-None-Match"]
    ? new Response(null, { status: 304, headers: { "Tidemark-Times": '{"now": "2026-11-27T13:00:00Z"}' } })
    : new Response(JSON.stringify(body), { status: 200, headers: { ETag: 'W/"one"' } });
  const first = await fetchAnswer("a", { headers: {} });
  const second = await fetchAnswer("a", { headers: {} });
  const third = await fetchAnswer("a", { headers: {} });
  console.log(JSON.stringify({ first: first.found, second: second.found, third: third.found }));
}

function hide(hidden) {
  document = new Proxy(document, { get: (own, name) => (name === "hidden" ? hidden : own[name]) });
}
