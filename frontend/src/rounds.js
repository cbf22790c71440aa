// The rounds as a table. Rows are kept and changed in place, so that the focus stays where it is.
import { explained } from "./glossary.js";
import { badge, button, enable, make, tell } from "./dom.js";

export function roundsTable(panel) {
  const head = make("tr");
  const body = make("tbody");
  const table = make(
    "table",
    { class: "cgn-rounds" },
    make("caption", { class: "cgn-hidden-text", textContent: "Rounds of this session" }),
    make("thead", {}, head),
    body,
  );
  const scroll = make("div", { class: "cgn-rounds-scroll", role: "region", "aria-label": "Rounds", tabIndex: 0 }, table);
  const element = make("section", { class: "cgn-rounds-box" }, scroll);
  const rows = new Map();
  let shownRound = -1;
  // One stop on the way through the page, however many rounds; the arrow keys go on from it.
  body.addEventListener("keydown", (event) => {
    const names = [...rows.keys()].sort((a, b) => a - b).map((number) => rows.get(number).name);
    const at = names.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    names[to]?.focus();
  });

  function update() {
    const { rounds, columns, selected } = panel.view;
    element.hidden = !rounds.length;
    table.classList.toggle("cgn-timed", panel.view.session?.counted === false);
    const titles = ["Round", "Strategy", "Verdict", "Against best", ...columns, "Decision"];
    if (head.children.length !== titles.length || head.children[4].textContent !== columns[0]) {
      head.replaceChildren(
        ...titles.map((title, i) =>
          explained(make("th", { scope: "col", textContent: title, class: i >= 4 && i < titles.length - 1 ? "cgn-figure" : "" })),
        ),
      );
      // Rows have a cell for each column.
      for (const row of rows.values()) row.element.remove();
      rows.clear();
    }
    for (const [number, row] of rows) {
      if (number >= rounds.length) {
        row.element.remove();
        rows.delete(number);
      }
    }
    let hasGrown = false;
    for (const item of rounds) {
      if (!rows.has(item.number)) {
        rows.set(item.number, makeRow(item.number, columns.length));
        body.append(rows.get(item.number).element);
        hasGrown = true;
      }
      rows.get(item.number).fill(item, item.number === selected);
      rows.get(item.number).name.tabIndex = item.number === selected ? 0 : -1;
    }
    if (hasGrown || selected !== shownRound) reveal();
    shownRound = selected;
  }

  // The row that is looked at, inside the list only: the page never moves.
  function reveal() {
    const row = rows.get(panel.view.selected)?.element;
    if (!row) return;
    const [top, bottom] = [row.offsetTop - head.offsetHeight, row.offsetTop + row.offsetHeight];
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (bottom > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = bottom - scroll.clientHeight;
  }
  // Again when it is laid out, for a panel is filled before it is shown, and when the page gets narrower.
  new ResizeObserver(reveal).observe(scroll);

  function makeRow(number, figures) {
    const name = button("", () => panel.select(number), { kind: "cgn-link" });
    const isFigure = (i) => i >= 3 && i < 3 + figures;
    const cells = Array.from({ length: 4 + figures }, (_, i) => make("td", { class: isFigure(i) ? "cgn-figure" : "" }));
    const strategy = make("span", { class: "cgn-clip" });
    cells[0].append(strategy);
    const star = make("span");
    const under = make("span", { class: "cgn-under" });
    const decision = make("span", { class: "cgn-clip" });
    cells.at(-1).append(decision);
    const row = make("tr", {}, make("th", { scope: "row" }, name, star, under), ...cells);
    row.addEventListener("click", (event) => {
      if (!event.target.closest("button") && name.getAttribute("aria-disabled") !== "true") panel.select(number);
    });
    let shown = "";
    const fill = (item, isSelected) => {
      row.classList.toggle("cgn-selected", isSelected);
      row.classList.toggle("cgn-pending", item.pending);
      if (isSelected) name.setAttribute("aria-current", "true");
      else name.removeAttribute("aria-current");
      enable(name, item.selectable);
      const now = JSON.stringify(item);
      if (now === shown) return;
      shown = now;
      tell(name, item.revision);
      name.setAttribute("aria-label", `Show ${item.revision}`);
      star.replaceChildren(...(item.best ? [badge("best", "good")] : []));
      tell(strategy, item.strategy);
      tell(under, item.strategy);
      strategy.title = item.strategy;
      cells[1].replaceChildren(...(item.verdict ? [badge(item.verdict, item.kind)] : []));
      cells[2].replaceChildren(...(item.relation ? [badge(item.relation, item.relation_kind)] : []));
      cells[2].title = item.relation_reason;
      // In a narrow panel, which has no room for the verdict: a kernel that is compared has passed.
      if (item.verdict && !item.relation) {
        const verdict = badge(item.verdict, item.kind);
        verdict.classList.add("cgn-narrow");
        cells[2].replaceChildren(verdict);
      }
      if (item.relation_reason) for (const told of cells[2].children) told.title = item.relation_reason; // more than the word's meaning
      item.figures.forEach((figure, i) => tell(cells[3 + i], figure));
      const decided = item.words ? `${item.decision}: ${item.words}` : item.decision;
      tell(decision, item.not_tried ? `${decided} · not tried: ${item.not_tried}` : decided);
      decision.title = [item.words && decided, item.not_tried && `Not tried: ${item.not_tried_whole}`].filter(Boolean).join("\n");
    };
    return { element: row, name, fill };
  }

  return { element, update };
}
