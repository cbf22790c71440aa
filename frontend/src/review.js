// What a round is compared with, and its figures at a glance: bound, limits, and what changed most.
import { badge, make } from "./dom.js";
import { explained } from "./glossary.js";

const PARENT = "-1";

/** The base of diff and figures: each round's parent, or one revision for all rounds. */
export function baseBar(panel, detail) {
  const choice = make("select", { class: "cgn-choice cgn-base-choice", "data-cgn-name": "base" });
  const { pinned, version, note, parent } = detail.base;
  const own = pinned >= 0 ? "each round's parent" : parent ? `its parent, ${parent}` : "nothing: it has no parent";
  choice.append(make("option", { value: PARENT, textContent: own }));
  for (const item of panel.view.rounds) {
    const isOffered = item.has_source && (item.number !== detail.round || item.number === pinned);
    if (isOffered && !item.pending) choice.append(option(item));
  }
  for (const [i, item] of detail.versions.entries()) {
    if (!item.shown) choice.append(make("option", { value: `version ${item.attempt}`, textContent: `version ${i + 1} · ${item.label}` }));
  }
  if (choice.options.length === 1) return null; // there is nothing to choose
  choice.value = version >= 0 ? `version ${version}` : String(pinned);
  choice.title = "Same as %cutegen compare r0: diff and figures of every round are against this revision. A version is for its own round only.";
  choice.addEventListener("change", () => {
    const [number, attempt] = choice.value.split(" ").map(Number);
    panel.send("compare", attempt >= 0 ? { round: detail.round, attempt } : { round: number });
  });
  const label = make("label", { class: "cgn-base" }, make("span", { class: "cgn-label", textContent: "Compared with" }), choice);
  const bar = make("div", { class: "cgn-tools" }, label);
  if (version >= 0 || pinned >= 0 || note) {
    const words = version >= 0 ? "for this round only" : note || "for every round, until you choose its parent again";
    bar.append(make("span", { class: "cgn-muted", textContent: words }));
  }
  return bar;
}

function option(item) {
  const words = [item.revision, item.strategy, item.best ? "best" : ""].filter(Boolean);
  return make("option", { value: String(item.number), textContent: words.join(" · ") });
}

/** The bound in a sentence, a bar for each limit, and the figures that changed most. */
export function glanceStrip(glance) {
  if (!glance) return null;
  const strip = make("div", { class: "cgn-glance", role: "group", "aria-label": "At a glance" });
  strip.append(make("p", { class: "cgn-label", textContent: glance.headline }));
  if (glance.bars.length) {
    const list = make("ul", { class: "cgn-bars", "aria-label": glance.of });
    list.append(...glance.bars.map(bar), make("li", { class: "cgn-muted", textContent: glance.of }));
    strip.append(list);
  }
  if (glance.changes.length) {
    const words = [`Against ${glance.against}`, glance.size].filter(Boolean).join(", ");
    const list = make("ul", { class: "cgn-changes", "aria-label": words });
    list.append(make("li", { class: "cgn-muted", textContent: words }), ...glance.changes.map(change));
    strip.append(list);
  }
  return strip;
}

function bar({ name, fraction, figure }) {
  const fill = make("span", { class: "cgn-bar-fill" });
  fill.style.width = `${100 * fraction}%`;
  return make("li", {}, explained(make("span", { textContent: name })), " ", make("span", { class: "cgn-bar-track", "aria-hidden": "true" }, fill), ` ${figure}`);
}

function change({ title, before, after, moved, kind }) {
  const name = explained(make("span", { textContent: title }));
  return make("li", {}, name, ` ${before} → ${after} `, kind === "neutral" ? moved : badge(moved, kind));
}
