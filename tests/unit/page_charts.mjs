// The page's charts without a browser: elements that keep what they are given. Prints the labels of the value axis with
// the places at which they end, and the ids of the points, as JSON.

class Kept {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], textContent: "" });
  }
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  append(...children) {
    this.children.push(...children);
  }
  addEventListener() {}
}

globalThis.document = { createElement: (tag) => new Kept(tag), createElementNS: (_, tag) => new Kept(tag) };

function all(one) {
  return one instanceof Kept ? [one, ...one.children.flatMap(all)] : [];
}

const [page, points] = [process.argv[2], JSON.parse(process.argv[3])]; // the newest first
const { chart } = await import(`${page}/charts.js`);
const fields = [{ name: "at", words: "Time", unit: "time" }, { name: "offset", words: "Offset", unit: "version" }];
const found = all(chart({ name: "p", fields, points }, { name: "c", title: "C", words: "W.", fields: ["offset"], shape: "steps" }));
const labels = found.filter(({ tag, attributes }) => tag === "text" && attributes["text-anchor"] === "end");
const marks = found.filter(({ attributes }) => attributes.class === "mark");
console.log(JSON.stringify({
  labels: labels.map(({ attributes, children }) => [children[0], Number(attributes.x)]),
  marks: marks.map(({ attributes }) => [attributes["aria-label"], attributes.id]),
}));
