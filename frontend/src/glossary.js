// Words of the panel, explained on pointing with the entries of the documentation's glossary.
import entries from "glossary:entries";

/** What a label means, where the label is not the glossary's own word; "" for what would be explained wrongly. */
const OTHER = {
  "warp instr.": "warp instruction",
  "against the best before it": "against best",
  "estimated time": "estimate",
  "lanes active": "lane",
  "idle lanes": "lane",
  "global bytes": "global memory",
  "latency of loads": "",
  "instruction issue": "warp instruction",
  counts: "simulated counts",
  decision: "approve",
  lines: "",
};

/** Gives an element the glossary's text for its words as a title; leaves it as it is where there is none. */
export function explained(element, words = element.textContent) {
  const text = explanation(words);
  if (text && !element.title) {
    element.title = text;
    element.classList.add("cgn-term");
  }
  return element;
}

export function explanation(words) {
  const label = words.trim().toLowerCase().replace(/\s*\(.*\)$/, "");
  if (label in OTHER) return entries[OTHER[label]] ?? "";
  return entries[label] ?? entries[singular(label)] ?? entries[within(label)] ?? "";
}

function singular(label) {
  return label.replace(/(ches|xes)$/, (end) => end.slice(0, -2)).replace(/s$/, "");
}

/** The longest term of the glossary that is a part of a short label. */
function within(label) {
  const parts = label.split(/\s+/);
  if (parts.length > 5) return "";
  for (let size = parts.length - 1; size > 0; size--) {
    for (let start = parts.length - size; start >= 0; start--) {
      const part = parts.slice(start, start + size).join(" ");
      for (const term of [part, singular(part)]) if (term in entries && term.length > 2) return term;
    }
  }
  return "";
}
