// The round that is looked at, in tabs; or the request that waits to be sent, in an editor.
import { badge, button, folded, make, tell, trusted } from "./dom.js";
import { codePage } from "./code.js";
import { commentForm } from "./comment.js";
import { sourceEditor, textChanges, textEditor } from "./editor.js";
import { claimsLine } from "./ledger.js";
import { failedPlaces, linkLines } from "./places.js";
import { baseBar, glanceStrip } from "./review.js";

const NARROW = 700; // pixels, as in panel.css

export function detailView(panel) {
  const element = make("section", { class: "cgn-detail", "aria-label": "The round looked at" });
  let editor = null;
  let code = null;
  let shown = "";
  let tabs = null;
  let verdict = null;
  let hunks = null;
  let isNarrow = false;
  // Two sources side by side need room; without it the changes stand in one.
  const sizes = new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || contentRect.width <= NARROW === isNarrow) return;
    isNarrow = !isNarrow;
    if (panel.ui.split && tabs?.id() === "change") tabs.show("change", false);
  });
  sizes.observe(element);

  function update() {
    const detail = panel.detail;
    const now = JSON.stringify([detail, panel.isOver()]); // nothing can be typed once nobody would read it
    if (now === shown) return markStale(); // the open question, which an edit belongs to, may have come after it
    shown = now;
    rebuild();
  }

  function rebuild() {
    const root = element.getRootNode();
    const focused = element.contains(root.activeElement) ? root.activeElement.dataset.cgnName : "";
    editor?.destroy();
    code?.destroy();
    editor = code = null;
    tabs = verdict = null;
    const detail = panel.detail;
    if (detail.kind === "prompt") element.replaceChildren(...promptParts(detail));
    else if (detail.kind === "round") element.replaceChildren(...roundParts(detail));
    else element.replaceChildren(make("p", { class: "cgn-empty", textContent: detail.text ?? "" }));
    markStale();
    if (focused) element.querySelector(`[data-cgn-name="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** A verdict under an edit that was not evaluated is of the version before it. */
  function markStale() {
    if (!verdict) return;
    const isStale = panel.detail.editable && panel.hasEdit() && panel.draft.key === panel.detail.key;
    verdict.classList.toggle("cgn-stale", isStale);
    element.querySelector(".cgn-glance")?.classList.toggle("cgn-of-before", isStale);
    verdict.dataset.stale = isStale ? " of the version before your edit" : "";
  }

  /** The versions of a round's kernel: any can be looked at, and while the round waits also restored. */
  function versionsBar(detail) {
    const bar = make("div", { class: "cgn-tools cgn-versions", role: "group", "aria-label": "Versions of the kernel" });
    bar.append(make("span", { class: "cgn-label", textContent: "Versions" }));
    for (const [i, item] of detail.versions.entries()) {
      const label = `${i + 1}. ${item.label}: ${item.verdict}`;
      const show = button(label, () => panel.select(detail.round, item.attempt), { kind: "cgn-small" });
      show.setAttribute("aria-pressed", String(item.shown));
      show.dataset.cgnName = `version-${item.attempt}`;
      show.title = item.shown
        ? `This version of r${detail.round} is shown`
        : `Shows this version of r${detail.round}, with its verdict and figures; it decides nothing`;
      bar.append(show);
    }
    const chosen = detail.versions.find((item) => item.shown);
    if (detail.is_old && panel.view.gate?.gate === "revision" && panel.view.gate.round === detail.round) {
      const restore = button("Restore this version", (self) => panel.settle("restore", { attempt: chosen.attempt }, self), {});
      restore.title = "It takes the place of the version that waits, with the verdict that it has";
      bar.append(restore);
    }
    return bar;
  }

  function promptParts(detail) {
    const parts = [make("h3", { textContent: detail.title })];
    if (detail.from) parts[0].append(make("span", { class: "cgn-muted", textContent: ` starting from ${detail.from}` }));
    if (detail.strategy && !detail.editable) parts.push(strategyLine(detail.strategy)); // the gate states it
    const box = make("div", { class: "cgn-editor" });
    const asked = detail.editable
      ? `What the author (${detail.author}) is asked; you may change it here.`
      : detail.sent
        ? `What the author (${detail.author}) was asked.`
        : "What the model is asked. Copy the request above: it includes the standing instructions below.";
    parts.push(make("p", { class: "cgn-muted", textContent: asked }));
    if (detail.before) parts.push(make("div", { class: "cgn-tools" }, sinceToggle(detail)));
    element.replaceChildren(...parts, box);
    fillPrompt(box, detail);
    parts.push(box);
    if (detail.system) {
      const words = make("pre", { class: "cgn-text", textContent: detail.system });
      parts.push(folded("Standing instructions, sent before it", words));
    }
    return parts;
  }

  /** The request, or what is new in it since the last one. */
  function fillPrompt(box, detail) {
    editor?.destroy();
    box.replaceChildren();
    const shown = {
      text: detail.editable ? panel.textOf(detail.key, detail.user) : detail.user,
      label: `${detail.title}${detail.editable ? ", editable" : ""}`,
      isEditable: detail.editable && !panel.isOver(),
      onChange: (text) => panel.edit(detail.key, detail.user, text),
    };
    editor = panel.ui.since && detail.before ? textChanges(box, { ...shown, old: detail.before }) : textEditor(box, shown);
  }

  function sinceToggle(detail) {
    const control = button(`New since the request of ${detail.before_name}`, () => {
      panel.ui.since = !panel.ui.since;
      control.setAttribute("aria-pressed", String(panel.ui.since));
      fillPrompt(element.querySelector(".cgn-editor"), detail);
    }, { kind: "cgn-small" });
    control.setAttribute("aria-pressed", String(panel.ui.since));
    control.title = "Marks what differs from the last request, and folds what is the same";
    return control;
  }

  function roundParts(detail) {
    verdict = make("span", { class: "cgn-verdict" }, badge(detail.verdict, detail.good ? "good" : "bad"));
    const head = make("h3", {}, `${detail.title} `, verdict);
    if (detail.best) head.append(" ", badge("best", "good"));
    const parts = [head];
    if (detail.versions.length) parts.push(versionsBar(detail));
    if (detail.reason && !detail.editable) parts.push(make("p", { textContent: detail.reason }));
    const places = failedPlaces(detail.failed_lines, goToLine);
    if (places) parts.push(places);
    if (detail.strategy) parts.push(strategyLine(detail.strategy));
    if (detail.rationale_html) {
      const quote = trusted(detail.rationale_html, { class: "cgn-html cgn-quote", tabIndex: 0, role: "group" });
      quote.setAttribute("aria-label", "Rationale");
      parts.push(make("p", { class: "cgn-label", textContent: `Rationale of ${detail.rationale_by}` }), quote);
    }
    const claims = claimsLine(detail.claims);
    if (claims) parts.push(claims);
    const strip = glanceStrip(detail.glance);
    if (strip) parts.push(strip);
    const base = detail.has_source && baseBar(panel, detail);
    if (base) parts.push(base);
    const pages = [
      { id: "change", title: detail.old ? "Change" : "Source", build: () => changePage(detail) },
      ...detail.tabs.map((tab) => ({ id: tab.id, title: tab.title, build: () => linkLines(trusted(tab.body_html, { class: `cgn-html cgn-html-${tab.id}` }), goToLine) })),
      ...(detail.has_code ? [{ id: "code", title: "PTX and SASS", build: () => codeShown(detail) }] : []),
      { id: "roofline", title: "Roofline", build: () => panel.rooflinePage() },
      { id: "exchanges", title: "Prompt and reply", build: () => exchangesPage(detail) },
    ];
    parts.push(tabbed(pages));
    if (detail.spent) parts.push(make("p", { class: "cgn-muted", textContent: detail.spent }));
    return parts;
  }

  function goToLine(number) {
    tabs.show("change", true);
    editor.goToLine(number);
    editor.focus();
  }

  function tabbed(pages) {
    const bar = make("div", { class: "cgn-tabs", role: "tablist", "aria-label": "Parts of the round" });
    const body = make("div", { class: "cgn-tab-body", role: "tabpanel" });
    const chosen = pages.some((page) => page.id === panel.ui.tab) ? panel.ui.tab : pages[0].id;
    const items = pages.map((page) => {
      const tab = make("button", {
        type: "button",
        role: "tab",
        class: "cgn-tab",
        textContent: page.title,
        "data-cgn-name": `tab-${page.id}`,
      });
      tab.addEventListener("click", () => show(page.id, true));
      return { ...page, tab };
    });
    bar.append(...items.map((item) => item.tab));
    bar.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const at = items.findIndex((item) => item.tab.getAttribute("aria-selected") === "true");
      const next = items[(at + step + items.length) % items.length];
      show(next.id, true);
      next.tab.focus({ preventScroll: true });
    });

    function show(id, isChoice) {
      if (isChoice) panel.ui.tab = id;
      panel.look(id);
      editor?.destroy();
      code?.destroy();
      editor = code = null;
      for (const item of items) {
        const isShown = item.id === id;
        item.tab.setAttribute("aria-selected", String(isShown));
        item.tab.tabIndex = isShown ? 0 : -1;
        if (isShown) {
          body.setAttribute("aria-label", item.title);
          body.replaceChildren(item.build());
        }
      }
    }
    tabs = { show, id: () => items.find((item) => item.tab.getAttribute("aria-selected") === "true").id };
    show(chosen, false);
    return make("div", {}, bar, body);
  }

  /** The compiled code, which the kernel sends once its tab is open. */
  function codeShown(detail) {
    if (panel.code.key !== detail.key || !panel.code.kernels?.length) {
      return make("p", { class: "cgn-empty", textContent: "The code is being read." });
    }
    code = codePage(panel.code, panel.codeState);
    return code.element;
  }

  function changePage(detail) {
    if (!detail.has_source) {
      return make("p", { class: "cgn-empty", textContent: "The round ended without a source: see Prompt and reply." });
    }
    const box = make("div", { class: "cgn-editor" });
    const tools = make("div", { class: "cgn-tools" });
    const names = detail.old ? `${detail.old_name} → ${detail.new_name}` : detail.new_name;
    tools.append(make("span", { class: "cgn-label", textContent: names }));
    if (detail.old === detail.new) tools.append(make("span", { textContent: "No line differs." }));
    hunks = hunkTools();
    if (detail.old) {
      tools.append(
        hunks.element,
        toggle("Side by side", "split", detail),
        toggle("Whole file", "whole", detail),
      );
    }
    tools.append(toggle("Full height", "tall", detail));
    const note = commentForm(panel, detail, () => editor?.selected());
    if (detail.editable && !panel.isOver()) {
      tools.append(note.opener, make("span", { class: "cgn-muted", textContent: "You may edit the new source here." }));
    }
    const page = make("div", {}, tools, note.element, box);
    fillChange(box, detail);
    return page;
  }

  /** Ways from one change to the next, and how many there are. */
  function hunkTools() {
    const told = make("span", { class: "cgn-hunk-count", role: "status", "aria-live": "polite" });
    const [back, on] = [step("‹", "Previous change", "p", -1), step("›", "Next change", "n", 1)];
    const place = make("div", { class: "cgn-hunk-tools", role: "group", "aria-label": "Changes" }, back, told, on);
    return { element: place, update };

    function step(words, name, key, way) {
      const made = button(words, () => editor?.review?.move(way), { kind: "cgn-small" });
      made.setAttribute("aria-label", name);
      made.title = `${name}; key ${key}`;
      return made;
    }

    function update(review) {
      const list = review.list();
      const kept = list.filter((one) => one.isKept).length;
      const at = review.place() >= 0 && review.place() < list.length ? `${review.place() + 1} of ` : "";
      place.hidden = !list.length;
      tell(told, `${at}${list.length} ${list.length === 1 ? "change" : "changes"}${kept ? `, ${kept} kept` : ""}`);
    }
  }

  function fillChange(box, detail) {
    editor?.destroy();
    box.replaceChildren();
    box.classList.toggle("cgn-tall", panel.ui.tall);
    editor = sourceEditor(box, {
      old: detail.old,
      evaluated: detail.new,
      changes: detail.changes,
      failed: detail.failed_lines ?? [],
      text: panel.textOf(detail.key, detail.new),
      label: `Source of ${detail.new_name}${detail.editable ? ", editable" : ""}`,
      oldLabel: `Source of ${detail.old_name}`,
      isEditable: detail.editable && !panel.isOver(),
      isSplit: panel.ui.split && !isNarrow,
      isWhole: panel.ui.whole,
      onChange: (text) => panel.edit(detail.key, detail.new, text),
      marks: panel.marks,
      onHunks: (review) => hunks.update(review),
    });
  }

  function toggle(label, name, detail) {
    const control = button(
      label,
      () => {
        panel.ui[name] = !panel.ui[name];
        control.setAttribute("aria-pressed", String(panel.ui[name]));
        fillChange(element.querySelector(".cgn-editor"), detail);
      },
      { kind: `cgn-small cgn-toggle-${name}` },
    );
    control.setAttribute("aria-pressed", String(panel.ui[name]));
    return control;
  }

  function exchangesPage(detail) {
    const page = make("div", {});
    if (!detail.exchanges.length) page.append(make("p", { class: "cgn-empty", textContent: "Nobody was asked." }));
    detail.exchanges.forEach((item, i) => {
      const isLast = i === detail.exchanges.length - 1;
      const head = make("p", {}, badge(item.label, item.good ? "good" : item.findings_html ? "bad" : "neutral"));
      head.append(` ${detail.exchanges.length > 1 ? `${i + 1}. ` : ""}${item.purpose}`);
      if (item.words) head.append(`: ${item.words}`);
      if (item.cost) head.append(make("span", { class: "cgn-muted", textContent: ` (${item.cost})` }));
      const box = make("div", { class: "cgn-exchange" }, head);
      if (item.findings_html && !isLast) box.append(trusted(item.findings_html));
      if (item.prompt) box.append(folded(`Prompt, ${item.prompt.length.toLocaleString("en")} characters`, pre(item.prompt)));
      if (item.reply) box.append(folded(`Reply, ${item.reply.length.toLocaleString("en")} characters`, pre(item.reply)));
      page.append(box);
    });
    return page;
  }

  return {
    element,
    update,
    markStale,
    replace: (text) => editor?.replace(text),
    /** The hunks of the diff that is shown; null where none is. */
    review: () => editor?.review ?? null,
    focusEditor: () => editor?.focus(),
    /** Shows the editor of the change, where an edit is made. */
    refresh: (id) => {
      if (tabs?.id() === id) tabs.show(id, false);
    },
    destroy: () => {
      sizes.disconnect();
      editor?.destroy();
      code?.destroy();
    },
  };
}

function strategyLine(strategy) {
  const line = make("p", { class: "cgn-strategy" });
  line.append(make("b", { textContent: strategy.name }), `: ${strategy.statement}`);
  if (strategy.source !== "library") line.append(make("span", { class: "cgn-muted", textContent: ` (${strategy.source})` }));
  return line;
}

function pre(text) {
  const element = make("pre", { class: "cgn-text", tabIndex: 0, textContent: text });
  return element;
}

