// The source beside the PTX or SASS that came from it. Choosing a line marks its instructions, and the other way.
import { button, copyText, enable, make, tell } from "./dom.js";
import { rowList } from "./rows.js";

const UNCOUNTED = -1;

/** A count in three figures, as in the columns of the source: 3.14k. */
function short(count) {
  const power = Math.min(4, Math.floor(Math.log10(Math.max(1, count)) / 3));
  return power ? `${(count / 1000 ** power).toPrecision(3)}${" kMGT"[power]}` : String(count);
}

/** The page for `code`, a view of the kernel; `state` keeps what was chosen while the panel stands. */
export function codePage(code, state) {
  if (state.key !== code.key) Object.assign(state, { key: code.key, kernel: 0, line: 0, row: -1, top: {} });
  state.language ??= "PTX";
  const page = make("div", { class: "cgn-code" });
  const told = make("p", { class: "cgn-code-told", role: "status", "aria-live": "polite" });
  const note = make("p", { class: "cgn-muted" });
  const panes = make("div", { class: "cgn-code-panes" });
  const tools = make("div", { class: "cgn-tools" });
  page.append(tools, told, panes, note);
  let source = null;
  let listing = null;
  // Here the keys of the next and the previous change go to the places of a line.
  page.addEventListener("keydown", (event) => {
    const name = { n: "code-on", p: "code-back" }[event.key];
    if (!name || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    event.preventDefault();
    event.stopPropagation();
    tools.querySelector(`[data-cgn-name="${name}"]`).click();
  });
  build();
  return { element: page, destroy };

  function destroy() {
    source?.destroy();
    listing?.destroy();
  }

  /** Both lists anew, for another kernel or language. */
  function build(focused = "") {
    destroy();
    const kernel = code.kernels[state.kernel] ?? code.kernels[0];
    const shown = kernel.listings.find((one) => one.language === state.language) ?? kernel.listings[0];
    const rows = numbered(shown);
    const byLine = new Map();
    rows.forEach((row, index) => row.line && byLine.set(row.line, [...(byLine.get(row.line) ?? []), index]));
    if (!state.line) state.line = kernel.hottest || Math.min(...byLine.keys());
    const peak = Math.max(1, ...rows.map((row) => row.executions));
    const isCounted = rows.some((row) => row.executions >= 0);
    source = rowList({
      label: "Source",
      head: sourceHead(kernel),
      count: code.source.length,
      longest: Math.max(...code.source.map((line) => line.reduce((sum, [, text]) => sum + text.length, 0))),
      draw: (index) => sourceRow(kernel, code.source[index], index + 1, byLine.has(index + 1)),
      isMarked: (index) => index + 1 === state.line,
      onChoose: (index) => choose({ line: index + 1, row: byLine.get(index + 1)?.[0] ?? -1 }, "source"),
    });
    listing = rowList({
      label: shown.language,
      head: listingHead(shown, isCounted),
      count: rows.length,
      longest: Math.max(0, ...rows.map((row) => row.text.length)),
      draw: (index) => listingRow(rows[index], peak, isCounted),
      isMarked: (index) => state.line > 0 && rows[index].line === state.line,
      onChoose: (index) => choose({ line: rows[index].line, row: index }, "listing"),
    });
    panes.replaceChildren(source.element, listing.element);
    tell(note, [shown.note, rows.length ? "" : "There is no code to show."].filter(Boolean).join(" "));
    note.hidden = !note.textContent;
    tools.replaceChildren(...kernelChoice(kernel), languages(kernel, shown), jumps(), copying(shown));
    update("");
    if (focused) tools.querySelector(`[data-cgn-name="${focused}"]`)?.focus({ preventScroll: true });

    function choose(next, from) {
      Object.assign(state, next);
      update(from);
    }

    /** Marks what belongs together, and scrolls to it in the list that was not chosen in. */
    function update(from) {
      const mine = byLine.get(state.line) ?? [];
      if (state.row < 0 || rows[state.row]?.line !== state.line) state.row = from === "listing" ? state.row : (mine[0] ?? -1);
      source.update(state.line - 1, from !== "source");
      listing.update(state.row, from !== "listing");
      tell(told, words(kernel, shown, mine, rows));
      const [before, after] = [stretch(rows, mine, -1), stretch(rows, mine, 1)];
      for (const [name, at] of [["code-back", before], ["code-on", after]]) enable(tools.querySelector(`[data-cgn-name="${name}"]`), at >= 0);
    }

    /** From one stretch of instructions of the line to the next. */
    function jumps() {
      const group = make("div", { class: "cgn-hunk-tools", role: "group", "aria-label": "Places of the line" });
      for (const [name, label, mark, way] of [["code-back", "Previous place of this line", "‹", -1], ["code-on", "Next place of this line", "›", 1]]) {
        const made = button(mark, () => {
          const at = stretch(rows, byLine.get(state.line) ?? [], way);
          if (at >= 0) choose({ row: at }, "");
        }, { kind: "cgn-small" });
        made.setAttribute("aria-label", label);
        made.title = `${label}; key ${way > 0 ? "n" : "p"}`;
        made.dataset.cgnName = name;
        group.append(made);
      }
      return group;
    }
  }

  function languages(kernel, shown) {
    const group = make("div", { class: "cgn-hunk-tools", role: "group", "aria-label": "Language of the code" });
    for (const { language } of kernel.listings) {
      const made = button(language, () => {
        Object.assign(state, { language, row: -1 });
        build(`code-${language}`);
      }, { kind: "cgn-small" });
      made.setAttribute("aria-pressed", String(language === shown.language));
      made.dataset.cgnName = `code-${language}`;
      group.append(made);
    }
    return group;
  }

  function copying(shown) {
    const label = `Copy ${shown.language}`;
    const made = button(label, (self) => copyText(`${shown.text.join("\n")}\n`, self, label), { kind: "cgn-small" });
    made.title = "The whole text, with the declarations of registers and parameters that are left out here";
    return made;
  }

  function kernelChoice(kernel) {
    if (code.kernels.length < 2) return [make("span", { class: "cgn-label", textContent: kernel.name })];
    const select = make("select", { class: "cgn-select", "aria-label": "Kernel", "data-cgn-name": "code-kernel" });
    code.kernels.forEach((one, index) => select.append(make("option", { value: index, textContent: one.name, selected: one === kernel })));
    select.addEventListener("change", () => {
      Object.assign(state, { kernel: Number(select.value), line: 0, row: -1 });
      build("code-kernel");
    });
    return [select];
  }

  function stretch(rows, mine, way) {
    const starts = mine.filter((index) => !mine.includes(index - 1));
    const found = way > 0 ? starts.filter((index) => index > state.row) : starts.filter((index) => index < state.row).reverse();
    return found[0] ?? -1;
  }

  function words(kernel, shown, mine, rows) {
    if (!state.line) return "This instruction came from no line of the file: it is a library's, or the compiler's own.";
    const starts = mine.filter((index) => rows[index - 1]?.line !== state.line).length;
    const amount = `${mine.length.toLocaleString("en")} ${shown.language} ${mine.length === 1 ? "instruction" : "instructions"}`;
    const place = mine.length ? `${amount}${starts > 1 ? ` in ${starts} places` : ""}` : `no ${shown.language} instruction`;
    const full = kernel.figures[state.line]?.full;
    const counts = `${kernel.counts.charAt(0).toUpperCase()}${kernel.counts.slice(1)}`;
    return `Line ${state.line}: ${place}.${full ? ` ${counts}: ${full}.` : ""}`;
  }
}

/** The rows of a listing without what declares registers and parameters. */
function numbered(shown) {
  const rows = shown.text.map((text, i) => ({ text, line: shown.lines[i], executions: shown.executions[i] }));
  return rows.filter(({ text }) => /:\s*$/.test(text) || !/^\s*(\.|[(){}]\s*$)/.test(text));
}

function cell(kind, text, heat = 0, title = "") {
  const made = make("span", { class: `cgn-cell ${kind}`, textContent: text });
  if (heat > 0) made.style.setProperty("--cgn-heat", `${Math.round(5 + 45 * heat)}%`);
  if (title) made.title = title;
  return made;
}

/** The cells that stay in sight when the text is scrolled sideways. */
function side(...cells) {
  return make("span", { class: "cgn-row-side" }, ...cells);
}

function sourceHead(kernel) {
  const heads = kernel.columns.map(({ title, what }) => cell("cgn-figure", title, 0, what));
  return [side(cell("cgn-number", "Line"), ...heads), cell("cgn-row-text", "Source")];
}

function listingHead(shown, isCounted) {
  const runs = isCounted ? [cell("cgn-figure", "Exec.", 0, "Executions by warps in one call, over all launches.")] : [];
  return [side(cell("cgn-number", "Line", 0, "Line of the source"), ...runs), cell("cgn-row-text", shown.language)];
}

function sourceRow(kernel, line, number, hasCode) {
  const figures = kernel.figures[number];
  const cells = kernel.columns.map((_, i) => cell("cgn-figure", figures?.cells[i][0] ?? "", figures?.cells[i][1]));
  const words = cell("cgn-row-text", "");
  const indent = /^ */.exec(line[0]?.[1] ?? "")[0].length;
  // Half of the indentation: beside the code there is little room.
  const [[firstKind, first] = ["", ""], ...rest] = line;
  const pieces = [[firstKind, first.slice(indent - Math.ceil(indent / 2))], ...rest];
  words.append(...pieces.map(([kind, text]) => make("span", { class: kind && `cgn-py-${kind}`, textContent: text })));
  return [side(cell(hasCode ? "cgn-number cgn-has-code" : "cgn-number", String(number)), ...cells), words];
}

function listingRow(row, peak, isCounted) {
  const count = row.executions === UNCOUNTED ? "" : short(row.executions);
  const runs = isCounted ? [cell("cgn-figure", count, row.executions / peak, count && `${row.executions.toLocaleString("en")} executions by warps`)] : [];
  const words = cell("cgn-row-text", "");
  const [, before, name, after] = /^(\s*(?:\/\*[0-9a-f]+\*\/\s*)?(?:@!?%?\w+\s+)?)([a-zA-Z][\w.:]*)(.*)$/.exec(row.text) ?? [null, "", "", row.text];
  const isLabel = /:\s*$/.test(row.text);
  if (isLabel) words.append(make("span", { class: "cgn-py-f", textContent: row.text }));
  else words.append(make("span", { class: "cgn-py-c", textContent: before }), make("span", { class: "cgn-py-k", textContent: name }), after);
  return [side(cell("cgn-number", row.line ? String(row.line) : "·"), ...runs), words];
}
