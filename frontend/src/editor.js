// CodeMirror: a source against its parent, unified or side by side, or a text to edit.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { MergeView, getOriginalDoc, unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { alignment } from "./align.js";
import { button, keepKeys, make, tell } from "./dom.js";
import { hunkMarks, hunkReview } from "./hunks.js";
import { failedMarks, goTo, scrollsAlone, showLine, startOf } from "./places.js";
import { editorTheme } from "./theme.js";

// What hides or reorders text and is not in CodeMirror's own list.
const HIDDEN = /[\u200c\u200d\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f]/g;
const COLLAPSE = { margin: 3, minSize: 6 };

const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.bool, tags.null], class: "cgn-tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "cgn-tok-string" },
  { tag: [tags.comment, tags.docString], class: "cgn-tok-comment" },
  { tag: tags.number, class: "cgn-tok-number" },
  { tag: [tags.definition(tags.variableName), tags.definition(tags.className)], class: "cgn-tok-name" },
  { tag: tags.meta, class: "cgn-tok-meta" },
]);

function common(label, isEditable, onChange, { code, wraps }) {
  const extensions = [
    editorTheme,
    highlightSpecialChars({ addSpecialChars: HIDDEN }),
    EditorView.contentAttributes.of({
      "aria-label": label,
      "data-lm-suppress-shortcuts": "true",
      tabindex: "0",
      spellcheck: "false",
    }),
    EditorState.readOnly.of(!isEditable),
    EditorView.editable.of(isEditable),
  ];
  if (code) extensions.push(scrollsAlone, python(), syntaxHighlighting(highlighting), lineNumbers(), indentUnit.of("    "));
  if (wraps) extensions.push(EditorView.lineWrapping);
  if (isEditable) {
    extensions.push(
      history(),
      keymap.of([...defaultKeymap, ...historyKeymap]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
    );
  }
  return extensions;
}

/**
 * A source, with its changes against `old` where there is one; `changes` and the lines that `failed` are those of the
 * text that was `evaluated`.
 * `marks` remembers which hunks were kept, and `onHunks` is told of the hunks after each change. Returns the way to
 * read, to replace and to remove it, and under `review` what can be done with its hunks.
 */
export function sourceEditor(parent, { old, evaluated, changes, failed, text, label, oldLabel, isEditable, isSplit, isWhole, onChange, marks, onHunks }) {
  const collapse = isWhole ? {} : { collapseUnchanged: COLLAPSE };
  const diffConfig = { override: alignment(withoutReturns(old), withoutReturns(evaluated), changes) };
  const failedLines = failedMarks(failed, evaluated);
  let review = null;
  const marking = hunkMarks(
    () => review,
    (isNew) => {
      if (isEditable && !isSplit) paintControls(made.dom, review);
      if (isNew) onHunks(review);
    },
  );
  const made = old && isSplit ? sideBySide() : unified();
  reachCollapsed(made.dom);
  if (old) {
    review = hunkReview(made.view, made.before, marks, isEditable);
    marking.first(made.view);
  }
  const ways = handle(made.view, () => {
    review = null;
    made.destroy();
  });
  if (failed.length) showLine(made.view, failed[0].line);
  return { ...ways, review, goToLine: (number) => goTo(made.view, startOf(made.view, number)) };

  function sideBySide() {
    const merge = new MergeView({
      a: { doc: old, extensions: common(oldLabel, false, onChange, { code: true, wraps: true }) },
      b: { doc: text, extensions: [...common(label, isEditable, onChange, { code: true, wraps: true }), failedLines, ...marking.extensions] },
      parent,
      gutter: true,
      diffConfig,
      ...(isEditable ? { revertControls: "a-to-b", renderRevertControl: () => undoButton(() => review) } : {}),
      ...collapse,
    });
    return { view: merge.b, dom: merge.dom, before: () => merge.a.state.doc, destroy: () => merge.destroy() };
  }

  function unified() {
    const extensions = [...common(label, isEditable, onChange, { code: true, wraps: false }), failedLines];
    if (old) {
      const mergeControls = isEditable ? (type) => (type === "accept" ? keepButton(() => review) : undoButton(() => review)) : false;
      extensions.push(unifiedMergeView({ original: old, gutter: true, diffConfig, mergeControls, ...collapse }), ...marking.extensions);
    }
    const view = new EditorView({ doc: text, extensions, parent });
    return { view, dom: view.dom, before: () => getOriginalDoc(view.state), destroy: () => view.destroy() };
  }
}

// CodeMirror counts each end of a line as one character.
function withoutReturns(text) {
  return text.replace(/\r\n?/g, "\n");
}

/** Plain text, wrapped. */
export function textEditor(parent, { text, label, isEditable, onChange }) {
  const extensions = common(label, isEditable, onChange, { code: false, wraps: true });
  const view = new EditorView({ doc: text, extensions, parent });
  return handle(view, () => view.destroy());
}

/** Plain text with what differs from `old`, and what is the same folded. */
export function textChanges(parent, { old, text, label, isEditable, onChange }) {
  const diffConfig = { override: alignment(withoutReturns(old), withoutReturns(text), []) };
  const view = new EditorView({
    doc: text,
    extensions: [
      ...common(label, isEditable, onChange, { code: false, wraps: true }),
      unifiedMergeView({ original: old, gutter: true, diffConfig, mergeControls: false, collapseUnchanged: COLLAPSE }),
    ],
    parent,
  });
  reachCollapsed(view.dom);
  return handle(view, () => view.destroy());
}

function handle(view, destroy) {
  const forget = takeAll(view);
  return {
    destroy: () => {
      forget();
      destroy();
    },
    /** Numbers of the selected lines, and the first of them as text. */
    selected: () => {
      const { from, to } = view.state.selection.main;
      const first = view.state.doc.lineAt(from);
      const last = view.state.doc.lineAt(to > from && view.state.doc.lineAt(to).from === to ? to - 1 : to);
      return { first: first.number, last: last.number, text: view.state.doc.sliceString(first.from, last.to) };
    },
    focus: () => view.focus(),
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
  };
}

// "Select all" of the browser takes what is rendered, and CodeMirror renders what is near. All of it is meant.
function takeAll(view) {
  const listener = (event) => {
    const { main } = view.state.selection;
    const isWhole = main.from === 0 && main.to === view.state.doc.length;
    if (isWhole || !view.hasFocus || !coversLines(view)) return;
    if (event.type === "selectionchange") event.stopImmediatePropagation();
    view.dispatch({ selection: { anchor: 0, head: view.state.doc.length } });
  };
  // Both before CodeMirror's own listeners, which would take the part that is rendered.
  document.addEventListener("selectionchange", listener, true);
  view.contentDOM.addEventListener("beforeinput", listener, true);
  return () => document.removeEventListener("selectionchange", listener, true);
}

/** Whether the page's selection reaches from the first rendered line to the last, and no text is left out. */
function coversLines(view) {
  const selection = document.getSelection();
  const lines = view.contentDOM.querySelectorAll(".cm-line");
  if (!lines.length || !selection.rangeCount || selection.isCollapsed) return false;
  const range = selection.getRangeAt(0);
  if (!range.intersectsNode(lines[0]) || !range.intersectsNode(lines[lines.length - 1])) return false;
  const [before, after] = [document.createRange(), document.createRange()];
  before.setStart(lines[0], 0);
  before.setEnd(range.startContainer, range.startOffset);
  after.setEnd(lines[lines.length - 1], lines[lines.length - 1].childNodes.length);
  after.setStart(range.endContainer, range.endOffset);
  return !before.toString() && !after.toString();
}

/** Keeps a hunk: marks it as read. The text stays as it is, and the diff too. */
function keepButton(review) {
  const keep = button("Keep", () => review().keep(review().of(keep)), { kind: "cgn-small cgn-keep" });
  keep.title = "Mark this change as read; key k";
  return keep;
}

/** Takes a hunk back, which is an edit: it is evaluated before it counts. */
function undoButton(review) {
  const undo = button("Undo", () => {}, { kind: "cgn-small" });
  undo.addEventListener("click", (event) => {
    const { chunk } = undo.dataset; // side by side CodeMirror numbers them, and takes the pointer itself
    if (chunk === undefined) review().undo(review().of(undo));
    else if (event.detail === 0) review().undo(review().list()[Number(chunk)]);
  });
  undo.setAttribute("aria-label", "Undo this change");
  undo.title = "Put the old lines back, as an edit; key u";
  return undo;
}

/** The buttons of each hunk say whether it is kept. */
function paintControls(dom, review) {
  for (const keep of dom.querySelectorAll(".cgn-keep")) {
    const hunk = review.of(keep);
    const isKept = Boolean(hunk) && review.list().some((one) => one.name === hunk.name && one.isKept);
    tell(keep, isKept ? "Kept" : "Keep");
    keep.setAttribute("aria-pressed", String(isKept));
    keep.setAttribute("aria-label", isKept ? "Kept: this change was read" : "Keep this change");
    keep.closest(".cm-deletedChunk")?.classList.toggle("cgn-kept", isKept);
  }
}

// CodeMirror opens its folded lines by mouse only.
function reachCollapsed(dom) {
  const reach = () => {
    for (const bar of dom.querySelectorAll(".cm-collapsedLines:not([tabindex])")) {
      bar.tabIndex = 0;
      bar.setAttribute("role", "button");
      keepKeys(bar);
      bar.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        bar.click();
      });
    }
  };
  reach();
  new MutationObserver(reach).observe(dom, { childList: true, subtree: true });
}
