// Lines of the source at which the kernel failed: marked in the editor with their messages, and ways to go there.
import { getChunks, mergeViewSiblings, uncollapseUnchanged } from "@codemirror/merge";
import { RangeSetBuilder, StateField } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import { button, make } from "./dom.js";

const FAILED = Decoration.line({ class: "cgn-failed" });

class Message extends WidgetType {
  constructor(text) {
    super();
    this.text = text;
  }

  eq(other) {
    return other.text === this.text;
  }

  toDOM() {
    return make("div", { class: "cgn-failed-words", role: "note", textContent: this.text });
  }
}

/** Marks on the failed lines of the text that was `evaluated`; a line that reads otherwise now gets none. */
export function failedMarks(failed, evaluated) {
  const lines = evaluated.split(/\r\n?|\n/);
  const made = (state) => {
    const builder = new RangeSetBuilder();
    for (const { line: number, message } of failed) {
      if (number > state.doc.lines) continue;
      const line = state.doc.line(number);
      if (line.text !== lines[number - 1]) continue;
      builder.add(line.from, line.from, FAILED);
      builder.add(line.to, line.to, Decoration.widget({ widget: new Message(message), block: true, side: 1 }));
    }
    return builder.finish();
  };
  return StateField.define({
    create: made,
    update: (marks, { changes, docChanged }) => (docChanged ? marks.map(changes) : marks),
    provide: (field) => EditorView.decorations.from(field),
  });
}

/** Brings a place into sight, wherever the editor is on the page, and puts the cursor there. */
export function goTo(view, place, ...effects) {
  unfold(view, place);
  alone.delete(view);
  view.dispatch({ selection: { anchor: place }, effects: [EditorView.scrollIntoView(place, { y: "center" }), ...effects] });
  const { node } = view.domAtPos(place);
  (node.nodeType === 1 ? node : node.parentElement)?.scrollIntoView({ block: "nearest" });
}

// Views whose next scrolling leaves the page where it is.
const alone = new WeakSet();

/** Lets `showLine` scroll the editor's box in the place of CodeMirror, which would scroll the page too. */
export const scrollsAlone = EditorView.scrollHandler.of((view, { head }) => {
  if (!alone.delete(view)) return false;
  const box = view.dom.closest(".cm-mergeView") ?? view.scrollDOM;
  box.scrollTop = Math.max(0, view.lineBlockAt(head).top - box.clientHeight / 3);
  return true;
});

/** Scrolls the editor alone to a line: the page does not move. The line is drawn before the editor is in sight. */
export function showLine(view, number) {
  const place = startOf(view, number);
  unfold(view, place);
  alone.add(view);
  // CodeMirror keeps a place to scroll to until the editor has a height, and draws the lines around it.
  view.dispatch({ effects: EditorView.scrollIntoView(place, { y: "center" }) });
}

/** The start of a line; of the last one for a number beyond it. */
export function startOf(view, number) {
  return view.state.doc.line(Math.min(number, view.state.doc.lines)).from;
}

/** Opens the folded lines around a place, side by side in both texts. */
function unfold(view, place) {
  const at = folded(view).findIndex(({ from, to }) => from <= place && place <= to);
  if (at < 0) return;
  const { a, b } = mergeViewSiblings(view) ?? { b: view };
  for (const one of [a, b]) {
    const range = one && folded(one)[at];
    if (range) one.dispatch({ effects: uncollapseUnchanged.of(range.from) });
  }
}

/** The folded ranges of a text, in order; side by side both texts have the same ones. */
function folded(view) {
  const found = [];
  if (!getChunks(view.state)) return found;
  for (const set of view.state.facet(EditorView.decorations)) {
    if (typeof set === "function") continue;
    set.between(0, view.state.doc.length, (from, to, { spec }) => {
      if (spec.widget?.type === "collapsed-unchanged-code") found.push({ from, to });
    });
  }
  return found.sort((one, other) => one.from - other.from);
}

/** The failed lines as buttons that go to them; null where there are none. */
export function failedPlaces(failed, go) {
  if (!failed?.length) return null;
  const words = make("p", { class: "cgn-failed-places" }, "Failed at ");
  failed.forEach(({ line, message }, i) => words.append(i ? ", " : "", lineButton(line, `line ${line}`, message, go)));
  return words;
}

/** Makes buttons of the lines that a part of the kernel's HTML names. */
export function linkLines(element, go) {
  for (const place of element.querySelectorAll("[data-line]")) {
    place.replaceWith(lineButton(Number(place.dataset.line), place.textContent, "Show it in the source", go));
  }
  return element;
}

function lineButton(line, words, title, go) {
  const made = button(words, () => go(line), { kind: "cgn-link" });
  made.title = title;
  return made;
}
