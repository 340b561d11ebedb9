// Answers that the page has: a question that is asked again names the answer, and gets no body if it is still the same.

const MOST = 20;
const kept = new Map(); // address → { tag, text }

export async function fetchAnswer(url, options) {
  const known = kept.get(url);
  const headers = known ? { ...options.headers, "If-None-Match": known.tag } : options.headers;
  const answer = await fetch(url, { ...options, headers });
  if (answer.status === 304 && known) return { ok: true, found: withTimes(JSON.parse(known.text), timesOf(answer)), answer };
  if (!answer.ok) return { ok: false, answer };
  const text = await answer.text();
  keep(url, answer.headers.get("ETag"), text);
  return { ok: true, found: JSON.parse(text), answer };
}

function keep(url, tag, text) {
  kept.delete(url);
  if (!tag) return;
  kept.set(url, { tag, text });
  if (kept.size > MOST) kept.delete(kept.keys().next().value);
}

function timesOf(answer) {
  return JSON.parse(answer.headers.get("Tidemark-Times") ?? "{}");
}

// Ages have grown, and what is left has shrunk, since the answer was read. Points of a history are of their own time.
function withTimes(found, times) {
  const passed = times.now && found.now ? (new Date(times.now) - new Date(found.now)) / 1000 : 0;
  return { ...shifted(found, passed), ...times };
}

function shifted(value, passed) {
  if (Array.isArray(value)) return value.map((one) => shifted(one, passed));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, grown(name, one, passed)]));
}

function grown(name, value, passed) {
  if (name === "points") return value;
  if (typeof value !== "number" || value <= 0) return shifted(value, passed);
  if (name === "lag_seconds") return value + passed;
  return name === "hours_left" ? Math.max(0, value - passed / 3600) : value;
}
