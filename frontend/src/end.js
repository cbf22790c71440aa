// The end of a session: its reason, the next step, and buttons for what can be done now.
import { button, enable, make, tell } from "./dom.js";

export function endBar(panel) {
  const title = make("h3", { class: "cgn-gate-title" });
  const reason = make("p", { class: "cgn-gate-text" });
  const advice = make("p", { class: "cgn-gate-note" });
  const buttons = make("div", { class: "cgn-buttons", role: "group", "aria-label": "After the end" });
  const element = make("section", { class: "cgn-gate cgn-end", hidden: true }, title, reason, advice, buttons);
  element.tabIndex = -1;
  let shown = "";
  let items = [];

  function update() {
    const { end, session } = panel.view;
    element.hidden = !end || !panel.isEnded();
    if (element.hidden) return;
    tell(title, `${session?.name ?? panel.view.name ?? "The session"} has ended`);
    tell(reason, end.reason);
    tell(advice, end.advice);
    const now = JSON.stringify(end.steps);
    if (now !== shown) {
      shown = now;
      items = end.steps.map((step, i) => act(step, i === 0 ? "cgn-primary" : ""));
      items.push(act({ action: "fold", label: "Close the panel", does: "the record stays" }, "cgn-quiet"));
      buttons.replaceChildren(...items);
    }
    for (const item of items) enable(item, !panel.isSending());
  }

  function act(step, kind) {
    const made = button(step.label, () => panel.send(step.action), { kind, twin: step.typed });
    made.title = [step.does, made.title.replace("Same", "same")].filter(Boolean).join("; ");
    return made;
  }

  return { element, update };
}
