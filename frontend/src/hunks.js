// The hunks of a diff: gone through one by one, kept (marked as read and agreed to) or undone.
import { getChunks } from "@codemirror/merge";
import { RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView } from "@codemirror/view";
import { goTo } from "./places.js";

const repaint = StateEffect.define();

/** A short name of a text: marks are kept by it, so that a hunk that comes again is known. */
function nameOf(text) {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  return (high >>> 0).toString(36) + (low >>> 0).toString(36);
}

/**
 * What can be done with the hunks of `view`, whose text is compared with `before()`. `marks` has `has(name)` and
 * `set(name, isKept)`, `onChange` is called when the hunks or the one that is looked at have changed.
 */
export function hunkReview(view, before, marks, isEditable) {
  let at = -1;

  function list() {
    const found = getChunks(view.state)?.chunks ?? [];
    const [old, text] = [before(), view.state.doc];
    return found.map((chunk) => {
      const was = old.sliceString(chunk.fromA, Math.max(chunk.fromA, chunk.endA));
      const now = text.sliceString(chunk.fromB, Math.max(chunk.fromB, chunk.endB));
      return { chunk, name: nameOf(`${was}\u0000${now}`) };
    });
  }

  function move(step) {
    const hunks = list();
    if (!hunks.length) return;
    at = at < 0 || at >= hunks.length ? (step > 0 ? 0 : hunks.length - 1) : (at + step + hunks.length) % hunks.length;
    const { chunk } = hunks[at];
    const place = Math.min(chunk.fromB, view.state.doc.length);
    goTo(view, place, repaint.of(null));
  }

  function current() {
    const hunks = list();
    const { head } = view.state.selection.main;
    const found = hunks.findIndex(({ chunk }) => head >= chunk.fromB && head <= Math.max(chunk.fromB, chunk.endB));
    return hunks[found >= 0 ? found : at] ?? null;
  }

  function keep(hunk) {
    if (!hunk) return;
    marks.set(hunk.name, !marks.has(hunk.name));
    view.dispatch({ effects: repaint.of(null) });
  }

  /** Puts the old lines back: an edit, which is evaluated before it counts. */
  function undo(hunk) {
    if (!hunk || !isEditable) return;
    const { chunk } = hunk;
    const [old, text] = [before(), view.state.doc];
    let insert = old.sliceString(chunk.fromA, Math.max(chunk.fromA, chunk.toA - 1));
    if (chunk.fromA !== chunk.toA && chunk.toB <= text.length) insert += view.state.lineBreak;
    at = Math.max(-1, list().findIndex((one) => one.name === hunk.name) - 1); // the next one takes its place
    view.dispatch({ changes: { from: chunk.fromB, to: Math.min(text.length, chunk.toB), insert }, userEvent: "revert" });
  }

  /** The hunk whose removed lines, with its buttons, are drawn as `element`. */
  function of(element) {
    const place = view.posAtDOM(element);
    return list().find(({ chunk }) => place >= chunk.fromB && place <= Math.max(chunk.fromB, chunk.endB));
  }

  const states = () => list().map((hunk) => ({ ...hunk, isKept: marks.has(hunk.name) }));
  return { list: states, move, current, keep, undo, of, place: () => at };
}

/** Marks on the lines of kept hunks and of the one that is looked at; `onPaint` is called after each change. */
export function hunkMarks(reviewOf, onPaint) {
  const setMarks = StateEffect.define();
  // Set after the diff was made anew, which is another field of the same state.
  const marks = StateField.define({
    create: () => Decoration.none,
    update: (value, transaction) => {
      for (const effect of transaction.effects) if (effect.is(setMarks)) return effect.value;
      return transaction.docChanged ? value.map(transaction.changes) : value;
    },
    provide: (field) => EditorView.decorations.from(field),
  });
  const listener = EditorView.updateListener.of(({ view, docChanged, transactions, viewportChanged, geometryChanged }) => {
    const isNew = docChanged || transactions.some((one) => one.effects.some((effect) => effect.is(repaint)));
    if (!isNew && !viewportChanged && !geometryChanged) return;
    queueMicrotask(() => {
      if (!reviewOf()) return;
      if (isNew) view.dispatch({ effects: setMarks.of(markedLines(view.state.doc, reviewOf())) });
      onPaint(isNew);
    });
  });
  return { extensions: [marks, listener], first: (view) => view.dispatch({ effects: repaint.of(null) }) };
}

const KEPT = Decoration.line({ class: "cgn-kept" });
const LOOKED = Decoration.line({ class: "cgn-looked" });

function markedLines(text, review) {
  const builder = new RangeSetBuilder();
  review.list().forEach(({ chunk, isKept }, i) => {
    if ((!isKept && i !== review.place()) || chunk.fromB === chunk.toB) return;
    for (let place = chunk.fromB; place <= Math.min(chunk.endB, text.length); ) {
      const line = text.lineAt(place);
      builder.add(line.from, line.from, isKept ? KEPT : LOOKED);
      place = line.to + 1;
    }
  });
  return builder.finish();
}
