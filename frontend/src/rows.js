// A list of many rows of one height, of which only those in sight are elements. Moved by the arrow keys.
import { keepKeys, make } from "./dom.js";

const HEIGHT = 20; // of a row in pixels, as panel.css has it
const BEYOND = 8;
let lists = 0;

/**
 * `draw` gives the cells of a row, `isMarked` tells whether it is marked, `onChoose` is told a chosen row.
 * `longest` is the number of characters of the widest text.
 */
export function rowList({ label, head, count, longest, draw, isMarked, onChoose }) {
  const id = `cgn-rows-${++lists}`;
  const header = make("div", { class: "cgn-row cgn-row-head", "aria-hidden": "true" }, ...head);
  const body = make("div", { class: "cgn-rows-body" });
  body.style.height = `${count * HEIGHT}px`;
  const element = make("div", { class: "cgn-rows", role: "listbox", tabIndex: 0, "aria-label": label }, header, body);
  element.style.setProperty("--cgn-longest", `${longest}ch`);
  keepKeys(element);
  let active = -1;
  let wanted = null;
  const sizes = new ResizeObserver(() => {
    if (wanted !== null && element.clientHeight) reveal(wanted);
    show();
  });
  sizes.observe(element);
  element.addEventListener("scroll", show, { passive: true });
  element.addEventListener("click", (event) => {
    const row = event.target.closest?.(".cgn-row[data-index]");
    // A selection of text to copy is no choice.
    if (row && !String(element.getRootNode().getSelection?.() ?? document.getSelection())) onChoose(Number(row.dataset.index));
  });
  element.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(element.clientHeight / HEIGHT) - 2);
    const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: count - 1 };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey || !count) return;
    event.preventDefault();
    event.stopPropagation();
    onChoose(Math.min(count - 1, Math.max(0, moves[event.key])));
    reveal(active, true);
  });

  function show() {
    const first = Math.max(0, Math.floor(element.scrollTop / HEIGHT) - BEYOND);
    const last = Math.min(count, Math.ceil((element.scrollTop + element.clientHeight) / HEIGHT) + BEYOND);
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(row(index));
    body.replaceChildren(...rows);
    if (active >= first && active < last) element.setAttribute("aria-activedescendant", `${id}-${active}`);
    else element.removeAttribute("aria-activedescendant");
  }

  function row(index) {
    const made = make("div", { class: "cgn-row", role: "option", id: `${id}-${index}`, "data-index": String(index) }, ...draw(index));
    made.style.top = `${index * HEIGHT}px`;
    made.setAttribute("aria-setsize", String(count));
    made.setAttribute("aria-posinset", String(index + 1));
    made.setAttribute("aria-selected", String(isMarked(index)));
    if (index === active) made.classList.add("cgn-row-active");
    return made;
  }

  /** Brings a row into sight: at the edge, or else a third of the way down. */
  function reveal(index, isNear = false) {
    if (!element.clientHeight) {
      wanted = index; // once there is room
      return;
    }
    wanted = null;
    const [top, room] = [index * HEIGHT, element.clientHeight - 2 * HEIGHT];
    const isSeen = top >= element.scrollTop && top <= element.scrollTop + room - HEIGHT;
    if (!isSeen && isNear) element.scrollTop = top < element.scrollTop ? top : top - room + HEIGHT;
    else if (!isSeen) element.scrollTop = Math.max(0, top - room / 3);
    show();
  }

  return {
    element,
    /** Another active row; with `isFollowed` it is brought into sight. */
    update: (index, isFollowed) => {
      active = index;
      if (index >= 0 && isFollowed) reveal(index);
      show();
    },
    destroy: () => sizes.disconnect(),
  };
}
