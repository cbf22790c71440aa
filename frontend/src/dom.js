// Elements. Text always goes in as text; `html` is only for members the kernel names `…_html`.
import { explained } from "./glossary.js";

/** An element with properties, attributes (aria-, data-, role, for) and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (/^(aria-|data-|role$|for$|scope$|colspan$)/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  if (isFocusable(element)) keepKeys(element);
  return element;
}

/** A button with a label; `twin` is the line magic that does the same. */
export function button(label, onclick, { kind = "", twin = "" } = {}) {
  const element = make("button", { type: "button", class: `cgn-button ${kind}`.trim(), textContent: label });
  if (twin) element.title = `Same as ${twin}`;
  element.addEventListener("click", () => {
    if (element.getAttribute("aria-disabled") !== "true") onclick(element);
  });
  return element;
}

/** Out of use without losing the focus, as `disabled` would. */
export function enable(element, isEnabled) {
  if (isEnabled) element.removeAttribute("aria-disabled");
  else element.setAttribute("aria-disabled", "true");
}

/** Hides an element; a focus on it moves to the section around it, so that no dead button stays for its sake. */
export function conceal(element, isConcealed) {
  if (isConcealed && element === element.getRootNode().activeElement) {
    element.closest("section").focus({ preventScroll: true });
  }
  element.hidden = isConcealed;
}

/** Sets text only when it differs: an unchanged live region must stay silent. */
export function tell(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Copies a text, and says so on the button for a while. */
export async function copyText(text, self, label, missed = "Not copied: select it") {
  try {
    await navigator.clipboard.writeText(text);
    tell(self, "Copied");
  } catch {
    tell(self, missed);
  }
  setTimeout(() => tell(self, label), 2500);
}

/** HTML made and escaped by the kernel's own renderers. */
export function trusted(html, properties = {}) {
  const element = make("div", { class: "cgn-html", ...properties });
  element.innerHTML = html;
  for (const inner of element.querySelectorAll("summary, a, button, input, textarea")) keepKeys(inner);
  for (const head of element.querySelectorAll("th")) explained(head);
  for (const inner of element.querySelectorAll('[style*="overflow-x"]')) {
    keepKeys(inner);
    wide.observe(inner);
  }
  return element;
}

// What is wider than its place is scrolled by keys too; what is not is no stop on the way.
const wide = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) {
      target.tabIndex = 0;
      target.setAttribute("role", "group");
      target.setAttribute("aria-label", "Scrolls sideways");
    } else for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
  }
});

/** A part that opens on demand. */
export function folded(title, body, isOpen = false) {
  return make("details", { open: isOpen, class: "cgn-fold" }, make("summary", { textContent: title }), body);
}

/** A short status word. Its colour never stands alone: the word says it. */
export function badge(words, kind) {
  return explained(make("span", { class: `cgn-badge cgn-${kind}`, textContent: words }));
}

// JupyterLab runs cell shortcuts (a, b, d d) for keys typed here unless the focused element itself says no.
export function keepKeys(element) {
  element.setAttribute("data-lm-suppress-shortcuts", "true");
}

function isFocusable(element) {
  return /^(BUTTON|TEXTAREA|SELECT|INPUT|SUMMARY|A)$/.test(element.tagName) || element.tabIndex >= 0;
}
