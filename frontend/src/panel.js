// The panel of a refinement session. Everything it shows comes from the model's traits and survives a reload.
import { button, enable, folded, keepKeys, make, tell } from "./dom.js";
import { detailView } from "./detail.js";
import { gateBar } from "./gate.js";
import { roundsTable } from "./rounds.js";

const SILENCE_MS = 4000;
const DRAFT_MS = 400;
const LOOKS = new Set(["select", "merging"]); // they decide nothing
const EMPTY = { session: null, live: { state: "idle", sentence: "" }, columns: [], rounds: [], gate: null, selected: 0 };

class Panel {
  constructor(model, element) {
    this.model = model;
    this.element = element;
    this.ui = { tab: model.get("looking")?.tab ?? "change", split: false, whole: false };
    this.sent = null;
    this.message = "";
    this.skew = 0;
    this.draft = { ...model.get("draft") };
    this.build();
    this.listeners = {
      "change:view": this.guarded(() => this.viewChanged()),
      "change:detail": this.guarded(() => this.refresh()),
      "change:roofline": this.guarded(() => this.parts.detail.refresh("roofline")),
      "change:merging": this.guarded(() => this.parts.gate.update()),
      "change:answer": this.guarded(() => this.answered()),
      "change:closed": this.guarded(() => this.refresh()),
    };
    for (const [name, listener] of Object.entries(this.listeners)) model.on(name, listener);
    this.ticking = setInterval(() => this.tick(), 1000);
    this.theme = new MutationObserver(this.guarded(() => this.parts.detail.refresh("roofline")));
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
    this.guarded(() => this.refresh())();
  }

  // A widget manager swallows what a listener throws; here a person reads it.
  guarded(listener) {
    return () => {
      try {
        listener();
      } catch (error) {
        console.error(error);
        tell(this.parts.status, `The panel could not show this (${error}). Load the page again; nothing is lost.`);
      }
    };
  }

  get view() {
    const view = this.model.get("view");
    return view?.live ? view : EMPTY;
  }

  get detail() {
    return this.model.get("detail") ?? {};
  }

  get merging() {
    return this.model.get("merging") ?? {};
  }

  build() {
    const name = make("h2", { class: "cgn-name" });
    const mark = make("span", { class: "cgn-mark" });
    const facts = make("p", { class: "cgn-facts" });
    const lead = make("p", { class: "cgn-lead" });
    const stop = button("Stop", () => this.send("stop"), { kind: "cgn-stop", twin: "%cutegen stop" });
    const dot = make("span", { class: "cgn-dot", "aria-hidden": "true" });
    const status = make("span", { class: "cgn-status", role: "status", "aria-live": "polite" });
    const doing = make("span", { class: "cgn-doing" });
    const elapsed = make("span", { class: "cgn-elapsed", "aria-hidden": "true" });
    const rounds = roundsTable(this);
    const gate = gateBar(this);
    const detail = detailView(this);
    this.parts = { name, mark, facts, lead, stop, dot, status, doing, elapsed, rounds, gate, detail };
    const top = make("div", { class: "cgn-top" }, name, mark, make("span", { class: "cgn-space" }), stop);
    const line = make("div", { class: "cgn-line" }, dot, status, doing, elapsed);
    const header = make("header", { class: "cgn-header" }, top, facts, lead, line);
    this.root = make("div", { class: "cgn-panel" }, header, rounds.element, gate.element, detail.element);
    this.root.setAttribute("role", "region");
    this.root.setAttribute("aria-label", "Kernel refinement session");
    // CodeMirror's scroller and whatever else takes the focus by a click: JupyterLab asks the element itself.
    this.root.addEventListener("focusin", (event) => keepKeys(event.target));
    this.element.append(this.root);
  }

  viewChanged() {
    const { sent_at: sentAt } = this.view;
    if (sentAt) this.skew = Date.now() / 1000 - sentAt;
    const { live } = this.view;
    if (live.id !== this.question) this.message = this.sent ? this.message : "";
    this.question = live.id;
    const number = live.id.split(":")[1] ?? this.noticed?.number;
    if (live.notice !== this.noticed?.text) this.noticed = { text: live.notice, number };
    else if (number !== this.noticed.number) this.noticed = { ...this.noticed, isOld: true };
    this.refresh();
  }

  refresh() {
    const { parts, view } = this;
    const { session, live } = view;
    tell(parts.name, session ? session.name : view.name || "A refinement session");
    tell(parts.mark, session ? session.mark : "");
    parts.mark.hidden = !session;
    tell(parts.facts, session ? [...session.facts, session.used].join(" · ") : "");
    tell(parts.lead, session ? session.lead : "");
    parts.root = this.root;
    this.root.dataset.state = this.isOver() ? "ended" : live.state;
    parts.rounds.update();
    parts.gate.update();
    parts.detail.update();
    enable(parts.stop, !this.isOver() && live.state !== "idle");
    parts.gate.update(); // an edit in the detail decides which buttons are of use
    this.showStatus();
    this.tick();
  }

  showStatus() {
    const { live } = this.view;
    const closed = this.model.get("closed");
    const said = this.message || (this.noticed?.isOld ? "" : live.notice);
    const state = closed || live.sentence;
    tell(this.parts.status, said && said !== state ? `${said} ${state}`.trim() : state);
    tell(this.parts.doing, live.state === "working" && !closed ? live.doing : "");
  }

  tick() {
    const { live } = this.view;
    const isTimed = live.since && !this.isOver() && live.state !== "idle";
    const seconds = Math.max(0, Math.floor(Date.now() / 1000 - live.since - this.skew));
    const words = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    tell(this.parts.elapsed, isTimed ? words : "");
  }

  say(message) {
    this.message = message;
    this.showStatus();
  }

  isOver() {
    return Boolean(this.model.get("closed")) || this.view.live.state === "ended";
  }

  isSending() {
    return this.sent !== null && !LOOKS.has(this.sent.kind);
  }

  select(number) {
    if (number !== this.view.selected) this.send("select", { round: number });
  }

  decide(kind, more = {}) {
    this.send(kind, { question: this.view.live.id, ...more });
  }

  send(kind, more = {}) {
    const id = `${Date.now()}-${Math.random().toString(36).slice(2)}`;
    clearTimeout(this.sent?.timer);
    const timer = setTimeout(() => this.unanswered(id), SILENCE_MS);
    this.sent = { id, kind, timer };
    this.model.set("action", { id, action: kind, reason: "", edited: "", round: -1, question: "", ...more });
    this.model.save_changes();
    if (!LOOKS.has(kind)) this.say("Sent.");
    this.refresh();
  }

  answered() {
    const { id, refused } = this.model.get("answer") ?? {};
    if (id === "" && refused) this.say(refused);
    if (!this.sent || this.sent.id !== id) return;
    clearTimeout(this.sent.timer);
    this.sent = null;
    this.message = refused || ""; // what it did is said by the kernel, in live.notice
    this.refresh();
  }

  unanswered(id) {
    if (this.sent?.id !== id) return;
    this.sent = null;
    this.message =
      "The kernel has not answered yet: it may be busy with a cell. If it was restarted, run %cutegen resume.";
    this.refresh();
  }

  /** The text of an editor: what was typed for this question, else what it began with. */
  textOf(key, original) {
    return this.draft.key === key ? this.draft.text : original;
  }

  edit(key, original, text) {
    this.draft = text === original.replace(/\r\n?/g, "\n") ? {} : { key, text };
    this.parts.gate.update();
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => {
      this.model.set("draft", { ...this.draft });
      this.model.save_changes();
    }, DRAFT_MS);
  }

  edited() {
    return this.draft.text ?? "";
  }

  isEdited() {
    return this.draft.key !== undefined && this.draft.key === this.view.live.id && this.detail.key === this.draft.key;
  }

  restore() {
    const { detail } = this;
    const original = detail.kind === "prompt" ? detail.user : detail.new;
    this.parts.detail.replace(original);
    this.draft = {};
    this.edit(detail.key, original, original.replace(/\r\n?/g, "\n"));
  }

  /** Tells the kernel which tab is open: it draws the roofline only while somebody looks. */
  look(tab) {
    const looking = { tab, dark: this.isDark() };
    const before = this.model.get("looking") ?? {};
    if (before.tab === looking.tab && before.dark === looking.dark) return;
    this.model.set("looking", looking);
    this.model.save_changes();
  }

  rooflinePage() {
    const roofline = this.model.get("roofline") ?? {};
    const words = roofline.words ?? [];
    if (!roofline.image) {
      const text = words.length ? words.join(" ") : "The roofline is being drawn.";
      return make("p", { class: "cgn-empty", textContent: text });
    }
    const picture = make("img", {
      class: "cgn-roofline",
      src: roofline.image,
      alt: "Roofline with the problem and each passing kernel; the same in words below.",
    });
    const list = make("ul", {}, ...words.map((line) => make("li", { textContent: line })));
    return make(
      "div",
      {},
      picture,
      make("p", { class: "cgn-muted", textContent: roofline.caption }),
      folded("The roofline in words", list),
    );
  }

  isDark() {
    const channels = getComputedStyle(this.root).backgroundColor.match(/[\d.]+/g) ?? ["255", "255", "255"];
    const [red, green, blue] = channels.map(Number);
    return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }

  destroy() {
    for (const [name, listener] of Object.entries(this.listeners)) this.model.off(name, listener);
    clearInterval(this.ticking);
    clearTimeout(this.sent?.timer);
    this.theme.disconnect();
    this.parts.detail.destroy();
    this.root.remove();
  }
}

function render({ model, el }) {
  const panel = new Panel(model, el);
  return () => panel.destroy();
}

export default { render };
