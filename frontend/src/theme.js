// Colours of the editor: JupyterLab's where it runs there. Added is blue, removed vermillion, each with its sign.
import { EditorView } from "@codemirror/view";

const ADDED = "0, 114, 178";
const REMOVED = "213, 94, 0";

export const editorTheme = EditorView.theme({
  "&": {
    color: "var(--cgn-ink)",
    backgroundColor: "var(--cgn-code-back)",
    fontSize: "var(--jp-code-font-size, 13px)",
  },
  "&.cm-focused": { outline: "2px solid var(--cgn-focus)", outlineOffset: "-2px" },
  ".cm-scroller": {
    fontFamily: "var(--jp-code-font-family, ui-monospace, monospace)",
    lineHeight: "1.45",
    overflow: "auto",
  },
  ".cm-content": { caretColor: "var(--cgn-ink)", padding: "4px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--cgn-ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-content ::selection": {
    backgroundColor: "var(--jp-editor-selected-focused-background, #b4d5fe88)",
  },
  ".cm-gutters": {
    backgroundColor: "var(--cgn-back)",
    color: "var(--cgn-faint)",
    borderRight: "1px solid var(--cgn-line)",
  },
  ".cm-changeGutter": { width: "1.3em", paddingLeft: "0" },
  ".cm-changeGutter .cm-gutterElement": { textAlign: "center", fontWeight: "700" },
  "&.cm-merge-a .cm-changedLineGutter, &.cm-merge-b .cm-changedLineGutter, & .cm-deletedLineGutter": {
    background: "transparent",
  },
  "&.cm-merge-b .cm-changedLineGutter::before": { content: '"+"', color: "var(--cgn-added)" },
  "&.cm-merge-a .cm-changedLineGutter::before": { content: '"\u2212"', color: "var(--cgn-removed)" },
  ".cm-deletedLineGutter::before": { content: '"\u2212"', color: "var(--cgn-removed)" },
  "&.cm-merge-b .cm-changedLine, & .cm-inlineChangedLine": {
    backgroundColor: `rgba(${ADDED}, 0.14)`,
  },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": {
    backgroundColor: `rgba(${REMOVED}, 0.14)`,
  },
  ".cm-deletedChunk": { paddingLeft: "6px" },
  "&.cm-merge-b .cm-changedText": {
    background: `rgba(${ADDED}, 0.34)`,
    textDecoration: "none",
    fontWeight: "600",
  },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: `rgba(${REMOVED}, 0.34)`,
    textDecoration: "none",
    fontWeight: "600",
  },
  ".cm-deletedChunk .cm-deletedLine, .cm-deletedChunk del": { textDecoration: "none" },
  ".cm-insertedLine, ins": { textDecoration: "none" },
  ".cm-chunkButtons": { insetInlineEnd: "6px" },
  "& .cm-chunkButtons button": {
    background: "var(--cgn-back)",
    border: "1px solid var(--cgn-line)",
    borderRadius: "4px",
    color: "var(--cgn-ink)",
    margin: "1px 0",
    padding: "0 8px",
  },
  ".cm-collapsedLines": {
    color: "var(--cgn-faint)",
    background: "var(--cgn-raised)",
    borderTop: "1px solid var(--cgn-line)",
    borderBottom: "1px solid var(--cgn-line)",
    padding: "2px 8px",
    fontFamily: "var(--jp-ui-font-family, system-ui, sans-serif)",
  },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '"\u2026"', margin: "0 6px" },
  ".cm-collapsedLines:focus-visible": { outline: "2px solid var(--cgn-focus)", outlineOffset: "-2px" },
  ".cm-specialChar": { color: "var(--cgn-removed)", fontWeight: "700" },
});
