// The end of a session: its reason, the next step, and buttons for what can be done now.
import { button, enable, make, tell } from "./dom.js";

export function endBar(panel) {
  const title = make("h3", { class: "cgn-gate-title" });
  const reason = make("p", { class: "cgn-gate-text" });
  const more = make("details", { class: "cgn-fold", hidden: true });
  const advice = make("p", { class: "cgn-gate-note" });
  const buttons = make("div", { class: "cgn-buttons", role: "group", "aria-label": "After the end" });
  const element = make("section", { class: "cgn-gate cgn-end", hidden: true }, title, reason, more, advice, buttons);
  element.tabIndex = -1;
  let shown = "";
  let told = "";
  let items = [];

  function update() {
    const { end, session } = panel.view;
    element.hidden = !end || !panel.isEnded();
    if (element.hidden) return;
    tell(title, `${session?.name ?? panel.view.name ?? "The session"} has ended`);
    tell(reason, end.reason);
    tell(advice, end.advice);
    tellMore(end.more);
    const now = JSON.stringify(end.steps);
    if (now !== shown) {
      shown = now;
      items = end.steps.map((step, i) => act(step, i === 0 ? "cgn-primary" : ""));
      items.push(act({ action: "fold", label: "Close the panel", does: "the record stays" }, "cgn-quiet"));
      buttons.replaceChildren(...items);
    }
    for (const item of items) enable(item, !panel.isSending());
  }

  /** What the reason leaves out, whole; it stays open while it is the same. */
  function tellMore(clauses) {
    const words = clauses.join("\n");
    if (words === told) return;
    told = words;
    more.hidden = !clauses.length;
    const summary = make("summary", { textContent: clauses.length === 1 ? "The reason in full" : `${clauses.length} reasons in full` });
    more.replaceChildren(summary, make("ul", {}, ...clauses.map((one) => make("li", { textContent: one }))));
  }

  function act(step, kind) {
    const made = button(step.label, () => panel.send(step.action), { kind, twin: step.typed });
    made.title = [step.does, made.title.replace("Same", "same")].filter(Boolean).join("; ");
    return made;
  }

  return { element, update };
}
