// The decision while its section is out of sight: a bar at the edge of what is read, with the same buttons.
import { button, enable, make, tell } from "./dom.js";

export function decisionBar(panel, sections) {
  const title = make("span", { class: "cgn-bar-title" });
  const buttons = make("div", { class: "cgn-bar-buttons" });
  const all = button("All answers", () => reveal(), { kind: "cgn-small" });
  const element = make("div", { class: "cgn-bar", hidden: true }, title, buttons, all);
  // For the eye and the pointer only: keys and screen readers have the section itself.
  element.setAttribute("aria-hidden", "true");
  all.tabIndex = -1;
  let drawn = "";

  const shown = () => sections.find((section) => !section.element.hidden);

  function reveal() {
    const section = shown()?.element;
    section?.scrollIntoView({ block: "center" });
    section?.focus({ preventScroll: true });
  }

  /** The part of the page in which the panel is scrolled. */
  function frame() {
    for (let at = panel.root.parentElement; at; at = at.parentElement) {
      if (/auto|scroll/.test(getComputedStyle(at).overflowY) && at.scrollHeight > at.clientHeight + 1) {
        return at.getBoundingClientRect();
      }
    }
    return { top: 0, bottom: window.innerHeight };
  }

  function place() {
    const section = shown();
    const isAsked = Boolean(section) && panel.view.live.state === "waiting" && !panel.isOver();
    const [view, whole] = [frame(), panel.root.getBoundingClientRect()];
    const own = isAsked ? section.element.getBoundingClientRect() : whole;
    const isGone = own.bottom < view.top + 8 || own.top > view.bottom - 8;
    // Beside Stop and Keys there is no room, and from there the section is near.
    const isAtHead = panel.parts.stop.getBoundingClientRect().bottom > view.top;
    element.hidden = !isAsked || !isGone || isAtHead || whole.bottom < view.top + 120 || whole.top > view.bottom;
    if (!element.hidden) element.style.top = `${Math.max(0, view.top - whole.top)}px`;
  }

  function update() {
    const section = shown();
    if (!section) return place();
    tell(title, section.title());
    const offered = section.answers();
    const now = JSON.stringify(offered.map((one) => [one.textContent, one.className, one.getAttribute("aria-disabled")]));
    if (now !== drawn) {
      drawn = now;
      buttons.replaceChildren(
        ...offered.map((one) => {
          const twin = button(one.textContent, () => press(one), { kind: `cgn-small ${one.classList.contains("cgn-primary") ? "cgn-primary" : ""}` });
          enable(twin, one.getAttribute("aria-disabled") !== "true");
          twin.title = one.title;
          twin.tabIndex = -1;
          return twin;
        }),
      );
    }
    place();
  }

  /** An answer that needs words is given where its form opens. */
  function press(one) {
    one.click();
    if (one.getAttribute("aria-expanded") === "true" || one.textContent.endsWith("…")) one.scrollIntoView({ block: "center" });
  }

  let waits = 0;
  const moved = () => {
    if (waits) return;
    waits = requestAnimationFrame(() => {
      waits = 0;
      place();
    });
  };
  document.addEventListener("scroll", moved, { capture: true, passive: true });
  window.addEventListener("resize", moved);
  return {
    element,
    update,
    destroy: () => {
      document.removeEventListener("scroll", moved, { capture: true });
      window.removeEventListener("resize", moved);
    },
  };
}
