// The reply of a model while it is streamed, and until its kernel is judged.
import { make, tell } from "./dom.js";

const ASKED = / writes: |asking again/;
const NEAR_END = 24; // pixels from the end within which the text is followed

export function writingBox(panel) {
  const title = make("h3", { class: "cgn-label" });
  const text = make("pre", { class: "cgn-text cgn-written", tabIndex: 0, role: "group", "aria-label": "Reply so far" });
  const element = make("section", { class: "cgn-writing", hidden: true }, title, text);
  element.setAttribute("aria-label", "Reply of the model");

  function update() {
    const { live } = panel.view;
    const written = panel.model.get("writing") ?? "";
    const isStreamed = live.doing.startsWith("the model ");
    const isOld = !isStreamed && ASKED.test(live.doing); // another reply is asked for, none of it has come
    element.hidden = !written || isOld || live.state !== "working" || panel.isOver();
    if (element.hidden) return;
    const isFollowed = text.scrollHeight - text.scrollTop - text.clientHeight < NEAR_END;
    tell(title, isStreamed ? "The model writes" : "The reply, while its kernel is judged");
    tell(text, written);
    if (isFollowed) text.scrollTop = text.scrollHeight;
  }

  return { element, update };
}
