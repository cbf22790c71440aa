// Keys for what is done often: the next change, keep or undo it, a comment, the decision. Listed under `?`.
import { button, keepKeys, make } from "./dom.js";

const KEYS = [
  ["n", "next change", ({ review }) => review?.move(1)],
  ["p", "previous change", ({ review }) => review?.move(-1)],
  ["k", "keep this change: mark it as read", ({ review }) => review?.keep(review.current())],
  ["u", "undo this change, as an edit", ({ review }) => review?.undo(review.current())],
  ["e", "to the source, to edit it (Esc leaves it)", ({ panel }) => panel.parts.detail.focusEditor()],
  ["c", "comment on the line of the cursor", ({ press }) => press("Comment on lines…")],
  ["A", "approve, or ask", ({ press }) => press("Approve", "Approve…", "Ask", "Ask…")],
  ["E", "evaluate the edit", ({ press }) => press("Evaluate my edit", "Send edited")],
  ["R", "reject, with a reason", ({ press }) => press("Reject…")],
  ["S", "steer, with words", ({ press }) => press("Steer…")],
  ["?", "show or hide this list", ({ panel }) => panel.parts.keys.toggle()],
];

export function keyHelp(panel) {
  const opener = button("Keys", () => toggle(), { kind: "cgn-small cgn-quiet" });
  opener.title = "Keys of the panel; ? shows them too";
  const list = make("dl", { class: "cgn-keys-list" });
  for (const [key, words] of KEYS) list.append(make("dt", {}, make("kbd", { textContent: key })), make("dd", { textContent: words }));
  const note = "They work while the focus is in the panel and not in a field. Esc leaves an editor for the panel.";
  const element = make("section", { class: "cgn-keys", hidden: true, "aria-label": "Keys of the panel" }, list, make("p", { class: "cgn-muted", textContent: note }));
  toggle(true);

  function toggle(isHidden = !element.hidden) {
    element.hidden = isHidden;
    opener.setAttribute("aria-expanded", String(!isHidden));
  }

  return { element, opener, toggle: () => toggle() };
}

/** Takes the keys of the whole panel. */
export function listenToKeys(panel) {
  const root = panel.root;
  root.tabIndex = -1; // a click beside all controls leaves the focus here
  keepKeys(root);
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target)) return;
    const found = KEYS.find(([key]) => key === event.key);
    if (!found) return;
    event.preventDefault();
    event.stopPropagation();
    found[2]({ panel, review: panel.parts.detail.review(), press });
  });

  // Before the editor sees it, whose Esc only gives up the lines that a comment would be about.
  root.addEventListener("keydown", leaveEditor, true);

  function leaveEditor(event) {
    if (event.key !== "Escape" || event.isComposing || !event.target.closest(".cm-content")) return;
    event.preventDefault();
    event.stopPropagation();
    root.focus({ preventScroll: true });
  }

  /** Presses the first of these buttons that is there and of use. */
  function press(...labels) {
    const buttons = [...root.querySelectorAll(".cgn-gate .cgn-button, .cgn-tools .cgn-button")];
    const isUsable = (one) => one.offsetParent !== null && one.getAttribute("aria-disabled") !== "true";
    const found = labels.map((label) => buttons.find((one) => one.textContent === label && isUsable(one))).find(Boolean);
    if (!found) return panel.say(`${labels[0].replace("…", "")} is not possible now.`);
    found.click();
    found.scrollIntoView({ block: "nearest" });
  }
}

function isTyping(target) {
  return /^(TEXTAREA|SELECT|INPUT)$/.test(target.tagName) || target.isContentEditable;
}
