// A comment on lines of the source: it goes into the next request, with the lines that it is about.
import { button, make, tell } from "./dom.js";

const QUOTED = 8; // lines that the request repeats

export function commentForm(panel, detail, selected) {
  const label = make("span", { class: "cgn-label" });
  const quote = make("pre", { class: "cgn-text cgn-quoted" });
  const words = make("textarea", { rows: 2, class: "cgn-words" });
  const field = make("label", { class: "cgn-field" }, label, words);
  const submit = button("Comment", () => send(), { kind: "cgn-primary", twin: "%cutegen steer WORDS" });
  const cancel = button("Cancel", () => close(), { kind: "cgn-quiet" });
  const element = make("div", { class: "cgn-form", role: "group", hidden: true }, quote, field, submit, cancel);
  element.setAttribute("aria-label", "Comment on lines");
  const opener = button("Comment on lines…", () => (element.hidden ? open() : close()), { kind: "cgn-small" });
  opener.title = "On the line of the cursor, or the lines that are selected";
  opener.dataset.cgnName = "comment";
  let lines = null;

  function open() {
    lines = selected();
    if (!lines) return;
    tell(quote, lines.text);
    tell(label, `What should the next request say on ${place(lines)} of ${detail.new_name}?`);
    words.value = panel.draftWords("comment");
    element.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    words.focus({ preventScroll: true });
  }

  function close() {
    element.hidden = true;
    opener.setAttribute("aria-expanded", "false");
    opener.focus({ preventScroll: true });
  }

  function send() {
    const text = words.value.trim();
    if (!text) {
      panel.say("Say first what the comment is.");
      words.focus({ preventScroll: true });
      return;
    }
    const shown = lines.text.split("\n");
    const more = shown.length > QUOTED ? [`… ${shown.length - QUOTED} lines more`] : [];
    const quoted = [...shown.slice(0, QUOTED), ...more].map((line) => `    ${line}`).join("\n");
    panel.settle("steer", { reason: `On ${place(lines)} of ${detail.new_name}:\n${quoted}\n${text}` }, opener, "comment");
    close();
  }

  words.addEventListener("input", () => panel.keep({ words: { comment: words.value } }));
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { element, opener };
}

function place({ first, last }) {
  return first === last ? `line ${first}` : `lines ${first}–${last}`;
}
