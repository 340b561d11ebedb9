// The fields of an act, as its form draws them: each with a label, its help, and what is wrong with it.

import { h } from "./elements.js";

const SEPARATOR = /[,\n]/;

// One row for each field, and a function that has the values as the route takes them.
export function drawn(fields) {
  const rows = fields.map((field) => row(field));
  const values = () => Object.fromEntries(fields.map((field, i) => [field.name, valueOf(field, rows[i].input)]));
  return { elements: rows.map(({ element }) => element), values, wrong: (problems) => told(fields, rows, problems) };
}

function row(field) {
  const id = `act-field-${field.name}`;
  const described = [field.help ? `${id}-help` : null, `${id}-trouble`].filter(Boolean).join(" ");
  const input = inputOf(field, { id, "aria-describedby": described, "aria-required": field.required ? "true" : null });
  const label = h("label", { for: id }, field.label, field.required ? " (required)" : "");
  const trouble = h("p", { id: `${id}-trouble`, class: "bad" });
  const first = field.type === "flag" ? [h("span", { class: "flag" }, input, " ", label)] : [label, input];
  const help = field.help ? h("p", { id: `${id}-help`, class: "quiet" }, field.help) : null;
  return { element: h("div", { class: "field" }, ...first, help, trouble), input, trouble };
}

// Any number of names: a text with a bound, or of one line, would drop some of them without a word.
function inputOf(field, attributes) {
  if (field.type === "flag") return h("input", { type: "checkbox", ...attributes });
  if (field.type === "names") return h("textarea", { rows: 2, ...attributes }, field.default);
  if (field.type !== "choice") return h("input", { type: "text", maxlength: 1000, value: field.default, ...attributes });
  const choices = field.choices ?? [];
  const options = choices.map((one) => h("option", { value: one.value, selected: one.value === field.default }, one.words));
  const none = field.choices === null ? "Not known" : choices.length === 0 ? "There is none" : "Choose";
  return h("select", attributes, h("option", { value: "" }, none), options);
}

function valueOf(field, input) {
  if (field.type === "flag") return input.checked;
  if (field.type === "names") return input.value.split(SEPARATOR).map((name) => name.trim()).filter(Boolean);
  return input.value;
}

// Says beside each field what is wrong with it, and goes to the first one. True if it is one of these fields.
function told(fields, rows, problems) {
  let first = null;
  fields.forEach((field, i) => {
    const problem = problems[field.name] ?? "";
    rows[i].trouble.textContent = problem;
    if (problem) rows[i].input.setAttribute("aria-invalid", "true");
    else rows[i].input.removeAttribute("aria-invalid");
    if (problem) first ??= rows[i].input;
  });
  first?.focus();
  return first !== null;
}
