// Predictions beside what was measured, and what a person said beside what came of it. Closed until it is asked for.
import { badge, button, make, tell } from "./dom.js";

export function ledgerBox(panel) {
  const title = make("summary");
  const body = make("div", {});
  const element = make("details", { class: "cgn-fold cgn-ledger", hidden: true }, title, body);
  let shown = "";

  function update() {
    const ledger = panel.model.get("ledger") ?? {};
    element.hidden = !ledger.title;
    if (!ledger.title) return;
    const now = JSON.stringify(ledger);
    if (now === shown) return;
    shown = now;
    tell(title, ledger.title);
    body.replaceChildren(...parts(ledger));
  }

  function parts({ claims, records, words }) {
    const found = [];
    if (claims.length) {
      found.push(table("Predictions", ["Round", "Of", "Predicted", "Came", "Result"], claims.map(claimRow)));
      found.push(make("ul", { class: "cgn-records" }, ...records.map((line) => make("li", { textContent: line }))));
    }
    if (words.length) found.push(table("What your words led to", ["At", "You", "Words", "Led to", "What came"], words.map(wordsRow)));
    return found;
  }

  function claimRow({ round, by, said, came, outcome, kind }) {
    return [show(round), by, code(said), came, outcome ? badge(outcome, kind) : ""];
  }

  function wordsRow({ round, did, words, led_to: ledTo, became, kind }) {
    const said = make("span", { class: "cgn-said-words", textContent: words, title: words });
    return [show(round), did, said, ledTo < 0 ? "" : show(ledTo), kind === "good" ? badge(became, kind) : became];
  }

  function show(number) {
    const link = button(`r${number}`, () => panel.select(number), { kind: "cgn-link" });
    link.setAttribute("aria-label", `Show r${number}`);
    return link;
  }

  return { element, update };
}

/** The claims about one round with their results, each behind whose it is; null where there are none. */
export function claimsLine(claims) {
  if (!claims.length) return null;
  const list = make("ul", { class: "cgn-changes cgn-claims", "aria-label": "Predictions" });
  let last = "";
  for (const { by, said, came, outcome, kind } of claims) {
    if (by !== last) list.append(make("li", { class: "cgn-muted", textContent: `Predicted by ${by}` }));
    last = by;
    const one = make("li", { title: `${by}: ${came}` }, code(said), " ", outcome ? badge(outcome, kind) : "");
    list.append(one);
  }
  return list;
}

/** A claim, in which a counter stands between backticks. */
function code(said) {
  const parts = said.split("`");
  return make("span", {}, ...parts.map((part, i) => (i % 2 ? make("code", { textContent: part }) : part)));
}

function table(caption, heads, rows) {
  const head = make("tr", {}, ...heads.map((one) => make("th", { scope: "col", textContent: one })));
  const body = make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))));
  const made = make("table", { class: "cgn-ledger-table" }, make("caption", { textContent: caption }), make("thead", {}, head), body);
  const scroll = make("div", { class: "cgn-ledger-scroll", role: "region", tabIndex: 0 }, made);
  scroll.setAttribute("aria-label", caption);
  return scroll;
}
