// Hunks of another revision put into the one that waits: chosen here, put together and shown by the kernel.
import { button, enable, folded, make, tell, trusted } from "./dom.js";

export function mergeForm(panel) {
  const other = make("select", { class: "cgn-choice" });
  const field = make("label", { class: "cgn-field" });
  field.append(make("span", { class: "cgn-label", textContent: "Take changes of" }), other);
  const sides = make("div", { class: "cgn-sides" });
  const words = make("p", { class: "cgn-merge-words", role: "status", "aria-live": "polite" });
  const places = make("pre", { class: "cgn-text", tabIndex: 0, hidden: true });
  places.setAttribute("aria-label", "Where they contradict");
  const preview = make("div");
  const submit = button("Merge and evaluate", () => send(), { kind: "cgn-primary", twin: "%cutegen merge r3 r4:1,2" });
  const cancel = button("Cancel", () => close(true), { kind: "cgn-quiet" });
  const buttons = make("div", { class: "cgn-buttons" }, submit, cancel);
  const element = make("div", { class: "cgn-form cgn-merge", role: "group", hidden: true });
  element.setAttribute("aria-label", "Merge");
  element.append(field, sides, words, places, preview, buttons);
  let opener = null;
  let boxes = []; // of each side, its hunks' check boxes
  let drawn = "";
  let shown = "";

  function open(from) {
    if (opener) return close(true);
    opener = from;
    opener.setAttribute("aria-expanded", "true");
    const { merges } = panel.view.gate;
    other.replaceChildren(
      ...merges.map((item) => make("option", { value: String(item.round), textContent: item.label })),
    );
    other.selectedIndex = merges.length - 1;
    element.hidden = false;
    other.focus({ preventScroll: true });
    choose();
  }

  function close(returnFocus) {
    if (!opener) return;
    const isInside = element.contains(element.getRootNode().activeElement);
    opener.setAttribute("aria-expanded", "false");
    if (returnFocus || isInside) opener.focus({ preventScroll: true });
    element.hidden = true;
    opener = null;
  }

  /** Another revision: all of its hunks, until the kernel has said which there are. */
  function choose() {
    boxes = [];
    drawn = "";
    sides.replaceChildren();
    look();
  }

  /** Both revisions as `%cutegen merge` takes them: `r3` whole, `r3:1,4` two of its hunks. */
  function revisions() {
    const names = [`r${other.value}`, `r${panel.view.gate.round}`];
    return names.map((name, i) => {
      const all = boxes[i] ?? [];
      const chosen = all.filter((box) => box.checked);
      return chosen.length === all.length ? name : `${name}:${chosen.map((box) => box.value).join(",")}`;
    });
  }

  function look() {
    tell(words, "Putting them together …");
    enable(submit, false);
    panel.send("merging", { question: panel.view.live.id, revisions: revisions() });
  }

  function update() {
    if (!opener) return;
    const found = panel.merging;
    const isMeant = found.question === panel.view.live.id && String(found.revisions) === String(revisions());
    enable(submit, isMeant && found.able && !panel.isSending());
    if (!isMeant) return;
    const now = JSON.stringify([found.origin, found.sides]);
    if (now !== drawn && found.sides.length) {
      drawn = now;
      boxes = [];
      sides.replaceChildren(...found.sides.map((side, i) => hunksOf(side, i, found.origin)));
    }
    tell(words, found.words);
    tell(places, found.places);
    places.hidden = !found.places;
    if (shown !== found.preview_html) {
      shown = found.preview_html;
      preview.replaceChildren(...(shown ? [folded("The change", trusted(shown), true)] : []));
    }
  }

  function hunksOf(side, index, origin) {
    const list = side.hunks.map((hunk) => {
      const box = make("input", { type: "checkbox", value: String(hunk.number), checked: true });
      box.addEventListener("change", look);
      const label = make("label", {}, box, ` Change ${hunk.number}`);
      label.append(make("span", { class: "cgn-muted", textContent: ` ${hunk.title}` }));
      return { box, element: make("div", { class: "cgn-hunk" }, label, trusted(hunk.body_html)) };
    });
    boxes[index] = list.map((item) => item.box);
    const role = index ? "which waits" : "taken into it";
    const title = `Changes of ${side.revision}, ${role} (against ${origin})`;
    const body = make("fieldset", { class: "cgn-hunks" }, make("legend", { class: "cgn-hidden-text", textContent: title }));
    body.append(...list.map((item) => item.element));
    return folded(title, body, !index);
  }

  function send() {
    const from = opener;
    const chosen = revisions();
    close(true);
    panel.settle("merge", { revisions: chosen }, from);
  }

  other.addEventListener("change", choose);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    close(true);
  });
  return { element, open, close, update };
}
