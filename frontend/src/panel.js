// The panel of a refinement session. Everything it shows comes from the model's traits and survives a reload.
import { button, enable, folded, keepKeys, make, tell } from "./dom.js";
import { decisionBar } from "./bar.js";
import { carryBar } from "./carry.js";
import { detailView } from "./detail.js";
import { endBar } from "./end.js";
import { gateBar } from "./gate.js";
import { ledgerBox } from "./ledger.js";
import { keyHelp, listenToKeys } from "./keys.js";
import { drawAgain, writeOutputs } from "./notebook_file.js";
import { populationBox } from "./population.js";
import { rooflineChart } from "./roofline.js";
import { roundsTable } from "./rounds.js";
import { writingBox } from "./writing.js";

const SILENCE_MS = 4000;
const DRAFT_MS = 400;
const MOST_KEPT = 500;
const LOOKS = new Set(["select", "compare", "merging", "checking"]); // they decide nothing
const SENT = "Sent.";
const QUOTED = 60; // characters of unsent words that a warning repeats
const beginning = (words) => (words.trim().length > QUOTED ? `${words.trim().slice(0, QUOTED)}…` : words.trim());
const NAMES = { approve: "Approve", reject: "Reject", steer: "Steer", branch: "Branch", overrule: "Overrule", stop: "Stop", skip: "No repair", merge: "Merge", restore: "Restore this version" };
const FORM_NAMES = { comment: "Comment on lines…", prediction: "Predict the effect" };
const EMPTY = { session: null, live: { state: "idle", sentence: "" }, columns: [], rounds: [], gate: null, carry: null, selected: 0 };
const LOST =
  "The kernel was restarted or is out of reach. If it still runs, load the page again. If not, finished rounds are " +
  "kept: run %load_ext cutegen_nb and then ";

/** The words with a stop behind them. */
const sentence = (words) => (/[.!?…:]$/.test(words) ? words : `${words}.`);

class Panel {
  constructor(model, element) {
    this.model = model;
    this.element = element;
    this.ui = { tab: model.get("looking")?.tab ?? "change", split: false, whole: false, tall: false, since: false };
    this.codeState = {};
    this.sent = null;
    this.message = "";
    this.predicted = ""; // the last prediction that was sent
    this.skew = 0;
    this.draft = { ...model.get("draft") };
    this.isLost = false;
    this.marks = { has: (name) => Boolean(this.draft.kept?.includes(name)), set: (name, isKept) => this.keepHunk(name, isKept) };
    this.build();
    this.listeners = {
      "change:view": this.guarded(() => this.viewChanged()),
      "change:detail": this.guarded(() => this.refresh()),
      "change:population": this.guarded(() => this.parts.population.update()),
      "change:ledger": this.guarded(() => this.parts.ledger.update()),
      "change:roofline": this.guarded(() => this.parts.detail.refresh("roofline")),
      "change:code": this.guarded(() => this.parts.detail.refresh("code")),
      "change:writing": this.guarded(() => this.parts.writing.update()),
      "change:merging": this.guarded(() => this.parts.gate.update()),
      "change:checked": this.guarded(() => this.parts.carry.update()),
      "change:saved": this.guarded(() => this.writeFile()),
      "change:draft": this.guarded(() => this.takeDraft()),
      // The manager of the widgets says so when their kernel has gone.
      comm_live_update: this.guarded(() => this.lose()),
      "change:answer": this.guarded(() => this.answered()),
      "change:closed": this.guarded(() => this.refresh()),
    };
    for (const [name, listener] of Object.entries(this.listeners)) model.on(name, listener);
    this.ticking = setInterval(() => this.tick(), 1000);
    this.theme = new MutationObserver(this.guarded(() => this.parts.detail.refresh("roofline")));
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
    this.guarded(() => this.refresh())();
    this.guarded(() => this.writeFile())();
  }

  // A widget manager swallows what a listener throws; here a person reads it.
  guarded(listener) {
    return () => {
      try {
        listener();
      } catch (error) {
        console.error(error);
        tell(this.parts.state, `The panel could not show this (${error}). Load the page again; nothing is lost.`);
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

  get request() {
    return this.model.get("request") ?? {};
  }

  get checked() {
    return this.model.get("checked") ?? {};
  }

  get code() {
    return this.model.get("code") ?? {};
  }

  get population() {
    return this.model.get("population") ?? {};
  }

  get merging() {
    return this.model.get("merging") ?? {};
  }

  build() {
    const name = make("h2", { class: "cgn-name" });
    const mark = make("span", { class: "cgn-mark" });
    const facts = make("p", { class: "cgn-facts" });
    const lead = make("p", { class: "cgn-lead" });
    const stop = button("Stop", (self) => this.settle("stop", {}, self), { kind: "cgn-stop", twin: "%cutegen stop" });
    const dot = make("span", { class: "cgn-dot", "aria-hidden": "true" });
    const said = make("span");
    const state = make("span");
    const status = make("span", { class: "cgn-status", role: "status", "aria-live": "polite" }, said, state);
    const doing = make("span", { class: "cgn-doing" });
    const elapsed = make("span", { class: "cgn-elapsed", "aria-hidden": "true" });
    const rounds = roundsTable(this);
    const population = populationBox(this);
    const ledger = ledgerBox(this);
    const gate = gateBar(this);
    const carry = carryBar(this);
    const end = endBar(this);
    const writing = writingBox(this);
    const bar = decisionBar(this, [gate, carry]);
    const detail = detailView(this);
    const keys = keyHelp(this);
    const file = make("p", { class: "cgn-muted", hidden: true });
    this.parts = { name, mark, facts, lead, stop, dot, said, state, doing, elapsed, rounds, ledger, population, gate, carry, end, writing, bar, detail, keys, file };
    const top = make("div", { class: "cgn-top" }, name, mark, make("span", { class: "cgn-space" }), keys.opener, stop);
    const line = make("div", { class: "cgn-line" }, dot, status, doing, elapsed);
    const header = make("header", { class: "cgn-header" }, top, facts, lead, line);
    this.root = make("div", { class: "cgn-panel" }, header, keys.element, rounds.element, population.element, gate.element, carry.element, end.element, writing.element, detail.element, ledger.element, file, bar.element);
    this.root.setAttribute("role", "region");
    this.root.setAttribute("aria-label", "Kernel refinement session");
    // CodeMirror's scroller and whatever else takes the focus by a click: JupyterLab asks the element itself.
    this.root.addEventListener("focusin", (event) => keepKeys(event.target));
    listenToKeys(this);
    this.element.append(this.root);
  }

  viewChanged() {
    this.isLost = false;
    const { sent_at: sentAt } = this.view;
    if (sentAt) this.skew = Date.now() / 1000 - sentAt;
    const { live } = this.view;
    if (live.id !== this.question) this.message = this.sent ? this.message : "";
    this.question = live.id;
    this.carryWords(live.id);
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
    this.root.dataset.state = this.isLost ? "lost" : this.isOver() ? "ended" : live.state;
    parts.rounds.update();
    parts.population.update();
    parts.ledger.update();
    parts.detail.update();
    enable(parts.stop, !this.isOver() && live.state !== "idle");
    parts.gate.update(); // after the detail: an edit in it decides which buttons are of use
    parts.carry.update();
    parts.end.update();
    parts.writing.update();
    parts.bar.update();
    this.showStatus();
    this.tick();
  }

  /** Whether a notice says where the files of the request are, which stands beside the request. */
  isOfRequest(notice) {
    return Boolean(this.view.carry) && notice.startsWith(`${this.view.carry.title}.`);
  }

  showStatus() {
    const { live } = this.view;
    const closed = this.model.get("closed");
    const said = this.message || (this.noticed?.isOld || this.isOfRequest(live.notice) ? "" : live.notice);
    const state = closed || (this.isLost ? `${LOST}%cutegen resume ${this.view.session?.name ?? this.view.name ?? ""}` : live.sentence);
    const isRefused = this.message ? this.message === this.refused : live.is_refused;
    const isTold = Boolean(said) && said !== state && !this.isLost;
    tell(this.parts.said, isTold ? `${sentence(said)} ` : "");
    this.parts.said.classList.toggle("cgn-bad-words", isTold && isRefused);
    tell(this.parts.state, state);
    tell(this.parts.doing, live.state === "working" && !this.isOver() ? live.doing : "");
  }

  tick() {
    const { live } = this.view;
    const isTimed = live.since && !this.isOver() && live.state !== "idle";
    const step = this.elapsed(live.since);
    const isLonger = live.state === "working" && live.began && live.since - live.began >= 1;
    tell(this.parts.elapsed, !isTimed ? "" : isLonger ? `${step}, ${this.elapsed(live.began)} in all` : step);
    this.parts.population.tick();
  }

  elapsed(since) {
    const seconds = Math.max(0, Math.floor(Date.now() / 1000 - since - this.skew));
    return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }

  say(message) {
    this.message = message;
    this.showStatus();
    // Who presses a button far below would not see why nothing happens.
    if (message && message !== SENT) this.parts.said.scrollIntoView({ block: "nearest" });
  }

  isEnded() {
    return !this.isLost && !this.model.get("closed") && this.view.live.state === "ended";
  }

  isOver() {
    return this.isLost || Boolean(this.model.get("closed")) || this.view.live.state === "ended";
  }

  isSending() {
    return this.sent !== null && !LOOKS.has(this.sent.kind);
  }

  lose() {
    if (this.view.live.state === "ended") return;
    this.isLost = true;
    clearTimeout(this.sent?.timer);
    this.sent = null;
    this.refresh();
  }

  /** After a reload only the page itself can bring the notebook's outputs up to date. */
  writeFile() {
    const saved = this.model.get("saved");
    if (!saved?.id) return;
    const isWritten = writeOutputs(this.model, saved);
    const name = this.view.session?.name ?? "";
    tell(this.parts.file, `This page was loaded again: the record in the notebook is older. %cutegen report ${name} prints it anew.`);
    this.parts.file.hidden = isWritten;
  }

  select(number, attempt = -1) {
    if (number !== this.view.selected || attempt >= 0 || this.detail.is_old) this.send("select", { round: number, attempt });
  }

  /**
   * A decision, once the person has said what becomes of an edit that it would leave out. `form` is where its words
   * were typed.
   */
  settle(kind, more, from, form = kind) {
    // A revision that is steered still waits, and with it the edit and what was typed in other forms.
    const isKept = kind === "steer" && this.view.gate?.gate === "revision";
    if (!isKept && this.warns(kind, form)) return;
    if (this.view.gate && !this.isOver() && this.hasEdit() && !isKept) this.parts.gate.ask(kind, more, from);
    else this.decide(kind, more, form);
    if (isKept) this.keep({ words: { [form]: "" } });
  }

  /** Says once for each decision that words would be left out which were typed for something else and not sent. */
  warns(kind, form = kind) {
    if (this.isOver() || this.draft.key !== this.view.live.id) return false;
    const { words = {}, text } = this.draft;
    const isAsked = this.view.gate?.gate === "prompt"; // a prediction is sent with the request, or stays for the next one
    const isLeftOut = (name) => name !== form && (name !== "prediction" || (isAsked && kind === "stop"));
    const found = Object.entries(words)
      .filter(([name, one]) => isLeftOut(name) && one.trim())
      .map(([name, one]) => `“${beginning(one)}” under ${FORM_NAMES[name] ?? `${NAMES[name] ?? name}…`}`);
    if (this.view.carry && text?.trim()) found.push(`the reply “${beginning(text)}”`);
    const now = JSON.stringify([kind, this.draft.key, words, found]);
    if (!found.length || this.warned === now) return false;
    this.warned = now;
    const pressed = kind === "approve" && isAsked ? "Ask" : (NAMES[kind] ?? kind);
    this.say(`You have typed ${found.join(", ")} and not sent ${found.length > 1 ? "them" : "it"}. Press ${pressed} again to go on without.`);
    return true;
  }

  decide(kind, more = {}, form = kind) {
    this.usedForm = form;
    this.send(kind, { question: this.view.live.id, ...more });
  }

  send(kind, more = {}) {
    const id = `${Date.now()}-${Math.random().toString(36).slice(2)}`;
    clearTimeout(this.sent?.timer);
    const timer = setTimeout(() => this.unanswered(id), SILENCE_MS);
    this.sent = { id, kind, timer };
    if (more.predicted) this.predicted = more.predicted;
    this.model.set("action", { id, action: kind, reason: "", edited: "", round: -1, question: "", ...more });
    this.model.save_changes();
    if (!LOOKS.has(kind)) this.say(SENT);
    this.refresh();
  }

  answered() {
    const { id, refused } = this.model.get("answer") ?? {};
    this.refused = refused || "";
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
      "The kernel has not answered yet: it may be busy with a cell. If it was restarted, run %load_ext cutegen_nb and " +
      `%cutegen resume ${this.view.session?.name ?? ""}.`.replace(" .", ".");
    this.refresh();
  }

  /** What was typed before the kernel was restarted comes once the session is open. */
  takeDraft() {
    if (this.draft.key) return;
    this.draft = { ...this.model.get("draft") };
    this.refresh();
  }

  /** The text of an editor: what was typed for this question, else what it began with. */
  textOf(key, original) {
    return this.draft.key === key ? (this.draft.text ?? original) : original;
  }

  /** What was typed for the open question and not sent. */
  draftText() {
    return this.draft.key && this.draft.key === this.view.live.id ? this.draft.text : undefined;
  }

  draftWords(kind) {
    return (this.draft.key === this.view.live.id && this.draft.words?.[kind]) || "";
  }

  edit(key, original, text) {
    this.keep({ text: text === original.replace(/\r\n?/g, "\n") ? undefined : text }, key);
    this.parts.detail.markStale();
    this.parts.gate.update();
  }

  /** Keeps what a person types for a question, so that a reload finds it. */
  keep(typed, key = this.view.live.id) {
    const before = this.draft.key === key ? this.draft : { kept: this.draft.kept };
    this.draft = { ...before, key, ...typed, words: { ...before.words, ...typed.words } };
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => {
      this.model.set("draft", JSON.parse(JSON.stringify(this.draft)));
      this.model.save_changes();
    }, DRAFT_MS);
  }

  /** Remembers that a hunk was kept, for as long as the session is shown, whatever is asked next. */
  keepHunk(name, isKept) {
    const others = (this.draft.kept ?? []).filter((one) => one !== name);
    this.draft = { ...this.draft, kept: isKept ? [...others, name].slice(-MOST_KEPT) : others };
    this.keep({}, this.draft.key ?? this.view.live.id);
  }

  /** Takes words that were typed and not sent to the next question on the same round, as after an edit. */
  carryWords(id) {
    const { key, words = {}, kept } = this.draft;
    const place = (name) => name.split(":").slice(0, 2).join(":");
    if (!key || key === id || !id.includes(":") || place(key) !== place(id)) return;
    this.draft = { kept };
    this.keep({ words: { ...words, prediction: "", [this.usedForm]: "" } }, id); // its field carries a prediction
  }

  edited() {
    return this.draftText() ?? "";
  }

  hasEdit() {
    return Boolean(this.view.gate) && this.draftText() !== undefined;
  }

  undoEdit() {
    const { detail } = this;
    const isShown = detail.key === this.draft.key;
    this.draft = { ...this.draft, text: undefined };
    if (isShown) this.parts.detail.replace(detail.kind === "prompt" ? detail.user : detail.new);
    this.keep({});
    this.parts.detail.markStale();
    this.parts.gate.update();
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
    if (roofline.chart) {
      this.chartState ??= {};
      const said = make("ul", {}, ...words.map((line) => make("li", { textContent: line })));
      const caption = make("p", { class: "cgn-muted", textContent: roofline.caption });
      return make("div", {}, rooflineChart(roofline.chart, this.chartState), caption, folded("The roofline in words", said));
    }
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
    this.parts.bar.destroy();
    this.root.remove();
  }
}

function render({ model, el }) {
  const panel = new Panel(model, el);
  return () => panel.destroy();
}

/**
 * What a page does for a panel that need not be in sight: it says that it was loaded, writes outputs that the
 * kernel no longer reaches, and takes clicks on the buttons that stand in the place of an ended session's panel.
 */
function initialize({ model }) {
  const panels = (globalThis.cutegenNbPanels ??= {});
  const mark = model.get("mark");
  panels[mark] = (action) => {
    const id = `${Date.now()}-${Math.random().toString(36).slice(2)}`;
    model.set("action", { id, action, reason: "", edited: "", round: -1, question: "" });
    model.save_changes();
    return true;
  };
  const write = () => {
    const saved = model.get("saved");
    if (saved?.id) writeOutputs(model, saved);
  };
  // When the kernel has gone the buttons copy the code beside them.
  const forget = () => delete panels[mark];
  model.on("comm_live_update", forget);
  model.on("change:saved", write);
  write();
  drawAgain(model);
  if (model.get("page") !== performance.timeOrigin) {
    model.set("page", performance.timeOrigin);
    model.save_changes();
  }
  return () => {
    forget();
    model.off("comm_live_update", forget);
    model.off("change:saved", write);
  };
}

export default { initialize, render };
