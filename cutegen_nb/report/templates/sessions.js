// Sort, filter and unfold the table of sessions. It reads the rows and writes no text of theirs as markup.
"use strict";
(() => {
  // Rows that are laid out at once; a button shows the others. Thousands would make each click slow.
  const MOST = 200;
  const value = (body, column) => body.rows[0].cells[column].dataset.v ?? "";

  function sort(table, header) {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const one of header.parentElement.cells) one.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const column = header.cellIndex;
    const number = header.dataset.kind === "number";
    const order = (a, b) => (number ? a - b : a.localeCompare(b, "en", { numeric: true })) * (down ? -1 : 1);
    const bodies = [...table.tBodies].map((body) => [value(body, column), body]);
    // A session without the figure stands last in either order.
    bodies.sort(([a], [b]) => (a === "") - (b === "") || order(a, b));
    table.append(...bodies.map(([, body]) => body));
  }

  function filter(root) {
    const bodies = root.querySelector(".cgs-table").tBodies;
    const words = root.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
    const selects = [...root.querySelectorAll("select")].filter((one) => one.value);
    const most = root.dataset.all ? Infinity : MOST;
    let fitting = 0;
    for (const body of bodies) {
      const fits =
        words.every((word) => body.dataset.text.includes(word)) &&
        selects.every((one) => body.dataset[one.dataset.key] === one.value);
      fitting += fits;
      body.hidden = !fits || fitting > most;
    }
    const count = (number) => number.toLocaleString("en");
    root.querySelector("[role=status]").textContent =
      fitting === bodies.length ? `${count(fitting)} session${fitting === 1 ? "" : "s"}` : `${count(fitting)} of ${count(bodies.length)} sessions`;
    const more = root.querySelector(".cgs-more");
    more.hidden = fitting <= most;
    more.textContent = `Show all ${count(fitting)}`;
  }

  function fillChoices(root) {
    const bodies = [...root.querySelector(".cgs-table").tBodies];
    for (const select of root.querySelectorAll("select")) {
      const values = [...new Set(bodies.map((body) => body.dataset[select.dataset.key]))].sort();
      for (const one of values) select.append(new Option(one, one));
      select.hidden = values.length < 2;
    }
  }

  for (const root of document.querySelectorAll(".cgs:not([data-ready])")) {
    root.dataset.ready = "";
    const table = root.querySelector(".cgs-table");
    const form = root.querySelector("form");
    fillChoices(root);
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => filter(root));
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.closest("thead")) {
        sort(table, button.closest("th"));
        return filter(root);
      }
      const detail = button.closest("tr").nextElementSibling;
      detail.hidden = !detail.hidden;
      button.setAttribute("aria-expanded", String(!detail.hidden));
    });
    root.querySelector(".cgs-more").addEventListener("click", () => {
      root.dataset.all = "yes";
      filter(root);
    });
    filter(root);
  }
})();
