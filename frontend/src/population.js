// The population: its kernels, its epochs, the slots that run, and at the gate of an epoch what a person may change.
import { badge, button, conceal, enable, folded, make, tell } from "./dom.js";

// A question that has just replaced another must not catch the second click meant for the first.
const SETTLE_MS = 350;

const BOXES = [
  {
    kind: "request",
    label: "Your own strategy",
    submit: "Ask for it",
    twin: "%cutegen request NAME: WORDS",
    missing: "Write the strategy first, as NAME: what to do.",
  },
  {
    kind: "forbid",
    label: "Forbid a strategy",
    submit: "Forbid",
    twin: "%cutegen forbid NAME",
    missing: "Name the strategy first.",
  },
  {
    kind: "budget",
    label: "Budget",
    submit: "Change",
    twin: "%cutegen budget epochs=6",
    missing: "Write epochs=N or population=N first.",
  },
];

export function populationBox(panel) {
  const title = make("h3", { class: "cgn-gate-title" });
  const note = make("p", { class: "cgn-gate-text" });
  const slots = make("ul", { class: "cgn-slots" });
  const head = make("tr");
  for (const name of ["Kernel", "Epoch", "Strategy", "Speed", "In force", "Limit", ""]) {
    head.append(make("th", { scope: "col", textContent: name, class: name === "Speed" ? "cgn-figure" : "" }));
  }
  const body = make("tbody");
  const caption = make("caption", { class: "cgn-hidden-text", textContent: "Kernels of the population" });
  const table = make("table", { class: "cgn-members" }, caption, make("thead", {}, head), body);
  const scroll = make("div", { class: "cgn-rounds-scroll", role: "region", "aria-label": "Population", tabIndex: 0 }, table);
  const said = make("ul", { class: "cgn-said" });
  const approve = button("Approve these members", () => panel.decide("approve"), {
    kind: "cgn-primary",
    twin: "%cutegen approve",
  });
  const stop = button("Stop here", () => panel.decide("stop"), { twin: "%cutegen stop" });
  const buttons = make("div", { class: "cgn-buttons", role: "group", "aria-label": "Decision on the epoch" }, approve, stop);
  const boxes = BOXES.map((item) => actionBox(panel, item));
  const actions = make("div", { class: "cgn-epoch-actions" }, buttons, ...boxes.map((one) => one.element));
  const history = make("ul", { class: "cgn-said" });
  const past = folded("Epochs so far", history);
  const element = make("section", { class: "cgn-gate cgn-population", hidden: true });
  element.append(title, note, slots, said, actions, scroll, past);
  let drawn = "";
  let question = "";
  let openedAt = 0;
  let rowButtons = [];

  function update() {
    const { population } = panel;
    const running = panel.isOver() ? [] : (panel.view.slots ?? []);
    const { live } = panel.view;
    const gate = live.gate === "epoch" && !panel.isOver() ? population.gate : null;
    element.hidden = !population.rows?.length;
    if (element.hidden) return;
    element.classList.toggle("cgn-waiting", Boolean(gate));
    tell(title, gate ? gate.title : running.length ? "The epoch that runs" : "Population");
    tell(note, noteOf(population, gate));
    fillSlots(running);
    if ((gate?.id ?? "") !== question) {
      question = gate?.id ?? "";
      openedAt = Date.now();
      if (gate) setTimeout(update, SETTLE_MS + 10);
    }
    const now = JSON.stringify([population, Boolean(gate)]);
    if (now !== drawn) {
      drawn = now;
      fillRows(population, gate);
      const last = gate ? population.epochs.at(-1) : null;
      said.replaceChildren(...(last?.said ?? []).map((words) => make("li", { textContent: words })));
      const before = gate ? population.epochs.slice(0, -1) : population.epochs;
      history.replaceChildren(...before.map(epochItem));
      past.hidden = !before.length;
    }
    said.hidden = !said.children.length;
    const isReady = Boolean(gate) && question === live.id && !panel.isSending() && Date.now() - openedAt >= SETTLE_MS;
    conceal(actions, !gate);
    for (const one of [approve, stop, ...rowButtons]) enable(one, isReady);
    for (const one of boxes) one.update(gate, isReady);
  }

  function noteOf(population, gate) {
    const speed = `Speed is the first kernel’s time ÷ the kernel’s, ${population.source}.`;
    return gate ? `${population.epochs.at(-1)?.text ?? ""} ${speed} ${population.zone}` : `${speed} ${population.zone}`;
  }

  function fillSlots(running) {
    slots.hidden = !running.length;
    while (slots.children.length > running.length) slots.lastChild.remove();
    running.forEach((slot, i) => {
      if (!slots.children[i]) slots.append(make("li", {}, make("span"), make("span", { class: "cgn-muted" })));
      const [words, state] = slots.children[i].children;
      tell(words, `Slot ${slot.number}: ${slot.move} of ${slot.from}${slot.strategy ? `, ${slot.strategy}` : ""}`);
      tell(state, ` — ${stateOf(slot)}`);
    });
  }

  function stateOf(slot) {
    if (slot.state === "done") return `done: ${slot.revision}`;
    if (slot.state === "planned") return "waits for a free worker";
    const seconds = Math.max(0, Math.floor(Date.now() / 1000 - slot.since - panel.skew));
    const since = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    return `${slot.doing || "starts"}, ${since}`;
  }

  function fillRows(population, gate) {
    const focused = element.getRootNode().activeElement?.dataset?.cgnRow;
    rowButtons = [];
    body.replaceChildren(...population.rows.map((row) => rowOf(row, gate)));
    if (focused) body.querySelector(`[data-cgn-row="${focused}"]`)?.focus({ preventScroll: true });
  }

  function rowOf(row, gate) {
    const name = button(row.label, () => panel.select(row.number), { kind: "cgn-link" });
    name.setAttribute("aria-label", `Show ${row.label}`);
    const marks = [
      row.best ? badge("best", "good") : null,
      row.pinned ? badge("pinned", "neutral") : row.member ? badge("goes on", "good") : null,
    ].filter(Boolean);
    const strategy = make("div", { class: "cgn-member-strategy" }, make("b", { textContent: row.strategy }));
    if (row.statement) {
      strategy.append(make("span", { class: "cgn-clip", textContent: row.statement, title: row.statement }));
    }
    for (const words of row.corrections) strategy.append(make("div", {}, badge("not fulfilled", "bad"), ` ${words}`));
    if (row.note) strategy.append(make("div", { class: "cgn-muted", textContent: row.note }));
    const speed = row.speed ? `${row.speed}${row.time ? ` (${row.time.replaceAll(" ", "\u00a0")})` : ""}` : row.outcome;
    const choices = make("td", { class: "cgn-member-choices" });
    if (gate && row.can_pin) choices.append(choice(row, "pin", "Pin"));
    if (gate && row.can_drop) choices.append(choice(row, "drop", "Drop"));
    return make(
      "tr",
      { class: row.member ? "cgn-member" : "" },
      make("th", { scope: "row" }, name, ...marks),
      make("td", { textContent: row.epoch ? `${row.epoch}, ${row.descent}` : "before the first" }),
      make("td", {}, strategy),
      make("td", { class: "cgn-figure", textContent: speed }),
      make("td", { textContent: row.carries || "–" }),
      make("td", { textContent: row.bound || "–" }),
      choices,
    );
  }

  function choice(row, kind, label) {
    const made = button(label, () => panel.decide(kind, { edited: row.label }), {
      kind: "cgn-small",
      twin: `%cutegen ${kind} ${row.label}`,
    });
    made.setAttribute("aria-label", `${label} ${row.label}`);
    made.dataset.cgnRow = `${kind} ${row.label}`;
    rowButtons.push(made);
    return made;
  }

  return { element, update, tick: () => fillSlots(panel.isOver() ? [] : (panel.view.slots ?? [])) };
}

function epochItem(epoch) {
  const words = epoch.said.map((text) => make("li", { textContent: text }));
  return make("li", { textContent: epoch.text }, ...(words.length ? [make("ul", {}, ...words)] : []));
}

/** A line of text with the button that sends it as a decision. */
function actionBox(panel, { kind, label, submit, twin, missing }) {
  const words = make("input", { type: "text", class: "cgn-words", autocomplete: "off" });
  const known = make("datalist", { id: `cgn-${kind}-${Math.random().toString(36).slice(2)}` });
  if (kind === "request") words.placeholder = "NAME: what to do, in one to three sentences";
  if (kind === "forbid") words.setAttribute("list", known.id);
  const field = make("label", { class: "cgn-field" }, make("span", { class: "cgn-label", textContent: label }), words);
  const go = button(submit, () => send(), { twin });
  const element = make("div", { class: "cgn-epoch-box" }, field, go, known);
  words.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    send();
  });

  function send() {
    if (go.getAttribute("aria-disabled") === "true") return;
    const edited = words.value.trim();
    if (!edited) {
      panel.say(missing);
      words.focus({ preventScroll: true });
      return;
    }
    panel.decide(kind, { edited });
    sent = edited;
  }

  // What was typed stays until the kernel has taken it: a refused one is mended, not written again.
  let sent = "";
  let shown = "";
  function update(gate, isReady) {
    enable(go, isReady);
    if (gate && gate.id !== shown) {
      if (sent && words.value.trim() === sent) words.value = "";
      sent = "";
      shown = gate.id;
    }
    if (!gate) return;
    if (kind === "budget") {
      words.placeholder = `epochs=${gate.epochs ?? "…"}`;
      words.title = `epochs=N or population=N; now ${gate.epochs ?? "no limit of"} epochs of ${gate.population} slots`;
    }
    if (kind === "forbid") known.replaceChildren(...gate.strategies.map((name) => make("option", { value: name })));
  }
  return { element, update };
}
