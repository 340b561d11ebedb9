// A command as it is typed, with a button that copies it.

import { h } from "./elements.js";

const SAID_FOR = 2000;

export function command(text) {
  const code = h("code", {}, text);
  const said = h("span", { class: "quiet", role: "status" });
  const copy = h("button", { type: "button", "aria-label": `Copy the command ${text}`, onclick: () => copied(text, code, said) }, "Copy");
  return h("div", { class: "command" }, code, copy, said);
}

// Without TLS a browser has no clipboard for pages, so the text is selected and copied as by hand.
async function copied(text, code, said) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(code);
    done = document.execCommand("copy");
  }
  said.textContent = done ? "Copied" : "Select it and copy it";
  setTimeout(() => (said.textContent = ""), SAID_FOR);
}
