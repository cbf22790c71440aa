// What is waited for, and the buttons that answer it. The elements stay; only their words and use change.
import { button, conceal, enable, make, tell } from "./dom.js";
import { mergeForm } from "./merge.js";

// A question that has just replaced another must not catch the second click meant for the first.
const SETTLE_MS = 350;

const FORMS = {
  reject: {
    label: "Why? The author is told.",
    submit: "Reject",
    missing: "Say why first: the author is told the reason.",
  },
  steer: {
    prompt: "What should this request say besides?",
    revision: "What should the next round do? This one still waits for a decision.",
    submit: "Steer",
    missing: "Say first what it should do.",
  },
  overrule: {
    label: "Why is the evidence wrong? It is recorded with the verdict.",
    submit: "Overrule",
    missing: "Say why first: the reason is recorded.",
  },
  branch: { label: "Go on from", submit: "Branch", missing: "Choose the revision first." },
};

export function gateBar(panel) {
  const title = make("h3", { class: "cgn-gate-title" });
  const text = make("p", { class: "cgn-gate-text" });
  const whyNot = make("p", { class: "cgn-gate-note" });
  const look = button("", () => panel.select(panel.view.gate.round), { kind: "cgn-link" });
  const approve = button("Approve", (self) => panel.settle("approve", prediction.told(), self), { kind: "cgn-primary" });
  const reject = button("Reject…", (self) => turnTo(form, self, "reject"), { twin: "%cutegen reject WHY" });
  const steer = button("Steer…", (self) => turnTo(form, self, "steer"), { twin: "%cutegen steer WORDS" });
  const edit = button("", () => panel.decide("edit", { edited: panel.edited(), ...prediction.told() }), { twin: "%cutegen edit" });
  const undo = button("Undo my edit", () => panel.undoEdit(), { kind: "cgn-quiet" });
  const branch = button("Branch…", (self) => turnTo(form, self, "branch"), { twin: "%cutegen branch r1" });
  const mix = button("Merge…", (self) => turnTo(merge, self), { twin: "%cutegen merge r3 r4:1,2" });
  const overrule = button("Overrule…", (self) => turnTo(form, self, "overrule"), { twin: "%cutegen overrule WHY" });
  const prediction = predictionField(panel);
  const form = decisionForm(panel);
  const merge = mergeForm(panel);
  const unsent = unsentForm(panel, () => update());
  const forms = [form, merge, unsent];
  const buttons = make("div", { class: "cgn-buttons", role: "group" });
  buttons.append(approve, edit, reject, steer, branch, mix, overrule, undo);
  const element = make("section", { class: "cgn-gate" }, title, text, whyNot, look, buttons);
  element.tabIndex = -1; // takes the focus of a button that goes
  element.append(prediction.element);
  element.append(...forms.map((item) => item.element));
  let question = "";
  let openedAt = 0;
  let heldFocus = false; // the gate has the focus of a button that is hidden while nothing is asked

  /** Opens a form below the buttons in the place of the others. */
  function turnTo(which, self, ...kind) {
    for (const other of forms) if (other !== which) other.close(false);
    panel.say("");
    which.open(...kind, self);
    update();
  }

  function update() {
    const { gate, live, carry } = panel.view;
    const isOpen = Boolean(gate) && !panel.isOver();
    const isPrompt = gate ? gate.gate === "prompt" : live.gate === "prompt";
    element.classList.toggle("cgn-waiting", isOpen);
    const isElsewhereAsked = live.gate === "epoch" || panel.view.slots?.length > 0; // the population's box asks
    const isFocused = element.contains(element.getRootNode().activeElement);
    element.hidden = panel.isOver() || Boolean(carry) || (isElsewhereAsked && !isFocused);
    if ((gate?.id ?? "") !== question) {
      question = gate?.id ?? "";
      openedAt = Date.now();
      for (const item of forms) item.close(false);
      if (isOpen) setTimeout(update, SETTLE_MS + 10);
    }
    prediction.update(isOpen && isPrompt && gate.may_predict);
    const isReady = isOpen && !panel.isSending() && Date.now() - openedAt >= SETTLE_MS;
    const isElsewhere = isOpen && panel.view.selected !== gate.round;
    const isOld = isOpen && !isElsewhere && Boolean(panel.detail.is_old);
    const isEdited = isOpen && panel.hasEdit();
    buttons.setAttribute("aria-label", isOpen ? `Decision on r${gate.round}` : "Decision");
    tell(title, isOpen ? `${gate.title} — ${isPrompt ? "send this request" : gate.asks}?` : "Nothing to decide now");
    tell(text, isOpen ? `${isEdited && !isPrompt ? "Before your edit: " : ""}${gate.text}` : isElsewhereAsked ? "The end of the epoch is decided above." : live.state === "working" ? IDLE : "");
    text.classList.toggle("cgn-stale", isEdited && !isPrompt);
    tell(whyNot, isOpen ? note(gate, { isPrompt, isEdited, isOld, versions: panel.detail.versions }) : "");
    whyNot.hidden = !whyNot.textContent || unsent.isOpen(); // the question says it
    tell(look, isOpen ? (isOld ? `Show the version of r${gate.round} that waits` : `Show r${gate.round}`) : "");
    conceal(look, !isElsewhere && !isOld);
    if (isOpen) {
      tell(approve, `${isPrompt ? "Ask" : "Approve"}${isEdited ? "…" : ""}`);
      approve.title = isEdited ? "Asks first what becomes of your edit" : (gate.is_kept ? "Keeps it beside the best · %cutegen approve" : "Same as %cutegen approve");
      tell(edit, isPrompt ? "Send edited" : "Evaluate my edit");
      conceal(reject, isPrompt);
      conceal(branch, isPrompt || !gate.branches.length);
      conceal(mix, isPrompt || !gate.merges.length);
      conceal(overrule, isPrompt || !gate.can_overrule);
    }
    edit.hidden = !edit.textContent;
    edit.classList.toggle("cgn-primary", isEdited);
    approve.classList.toggle("cgn-primary", !isEdited);
    enable(approve, isReady && gate.can_approve && !isOld);
    enable(reject, isReady && !isPrompt);
    enable(steer, isReady);
    enable(branch, isReady && !isPrompt && gate.branches.length > 0);
    enable(mix, isReady && !isPrompt && gate.merges.length > 0);
    enable(overrule, isReady && !isPrompt && gate.can_overrule);
    enable(edit, isReady && isEdited);
    merge.update();
    edit.title = isEdited ? "Same as %cutegen edit" : "Change the text below first";
    // While nothing is asked, and where the answers about an edit stand in their place.
    const focused = element.getRootNode().activeElement;
    if (!isOpen && buttons.contains(focused)) {
      heldFocus = true;
      element.focus({ preventScroll: true });
    }
    buttons.hidden = !isOpen || unsent.isOpen();
    if (isOpen && heldFocus) {
      heldFocus = false; // back to the buttons, unless the person went elsewhere
      if (focused === element && !buttons.hidden) approve.focus({ preventScroll: true });
    }
    conceal(undo, !isEdited);
    enable(undo, isEdited);
    panel.parts?.bar.update();
  }

  return {
    element,
    update,
    ask: (...what) => turnTo(unsent, what.pop(), ...what),
    title: () => title.textContent,
    answers: () =>
      unsent.isOpen()
        ? unsent.answers()
        : [edit, approve, reject, steer].filter((one) => !one.hidden && (one !== edit || panel.hasEdit())),
  };
}

const IDLE = "You are asked here before the next request and after each evaluation.";

/** What stands in the way of a decision, or is easily overlooked in it. */
function note(gate, { isPrompt, isEdited, isOld, versions }) {
  if (isOld) {
    const at = versions.findIndex((one) => one.shown) + 1;
    return (
      `You look at version ${at} of r${gate.round}. Restore it below to decide on it: ` +
      `until then every answer is for version ${currentVersion(versions)}.`
    );
  }
  if (isEdited && isPrompt) return "You have changed the request and not sent it yet. What is sent is the text below, with a steer's words where they still stand in it.";
  if (isEdited) return `You have changed the source of r${gate.round} and not evaluated it yet. The verdict is of the version before.`;
  return gate.why_not;
}

/** Number, origin and verdict of the version that a decision is for. */
function currentVersion(versions) {
  const at = versions.findIndex((one) => one.current);
  return `${at + 1} (${versions[at].label}, ${versions[at].verdict})`;
}

const LEFT_OUT = {
  approve: { prompt: ["Ask", "the request is sent as it was"], revision: ["Approve", "the version before it is built upon"] },
  reject: { revision: ["Reject", "the version before it is rejected"] },
  overrule: { revision: ["Overrule", "the version before it is built upon"] },
  branch: { revision: ["Branch", "the next round goes on from another revision"] },
  merge: { revision: ["Merge", "the changes are put into the version before it"] },
  steer: { prompt: ["Steer", "the request is written anew with your words"] },
  restore: { revision: ["Restore", "the earlier version takes its place"] },
  stop: { prompt: ["Stop", "the session ends"], revision: ["Stop", "the session ends"] },
};

/** Asks, in the place of the other answers, before a decision leaves out an edit that was not used. */
function unsentForm(panel, changed) {
  const words = make("p", { class: "cgn-unsent-words" });
  const use = button("", () => answer("edit", { edited: panel.edited(), predicted: panel.draftWords("prediction") }), { kind: "cgn-primary" });
  const drop = button("", () => answer(...wanted), {});
  const cancel = button("Cancel", () => close(true), { kind: "cgn-quiet" });
  const element = make("div", { class: "cgn-form", role: "alertdialog", hidden: true }, words, use, drop, cancel);
  element.setAttribute("aria-label", "Your edit was not used yet");
  let wanted = [];
  let opener = null;

  function open(kind, more, from) {
    [wanted, opener] = [[kind, more], from];
    const isPrompt = panel.view.gate.gate === "prompt";
    const [name, built] = LEFT_OUT[kind][panel.view.gate.gate];
    const effect = kind === "approve" && panel.view.gate.is_kept ? "the version before it is kept" : built;
    tell(words, `Your edit was not ${isPrompt ? "sent" : "evaluated"} yet. Without it, ${effect}.`);
    tell(use, isPrompt ? "Send edited" : "Evaluate my edit");
    tell(drop, `${name} without my edit`);
    element.hidden = false;
    use.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" }); // the bar's Stop is pressed with the gate out of sight
  }

  function close(returnFocus) {
    if (element.hidden) return;
    const isInside = element.contains(element.getRootNode().activeElement);
    const back = opener;
    element.hidden = true;
    opener = null;
    changed(); // the opener is hidden until now
    if (back && (returnFocus || isInside)) back.focus({ preventScroll: true });
  }

  function answer(kind, more) {
    panel.decide(kind, more);
    close(true);
  }

  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    close(true);
  });
  return { element, open, close, isOpen: () => !element.hidden, answers: () => [use, drop] };
}

/** A prediction before the request is sent; whoever wants none leaves it empty. */
function predictionField(panel) {
  const words = make("input", { type: "text", class: "cgn-words", placeholder: "gmem_sectors down 75 %, 2× faster" });
  const label = make("label", { class: "cgn-field" }, make("span", { class: "cgn-muted", textContent: PREDICT }), words);
  const element = make("details", { class: "cgn-fold cgn-predict", hidden: true }, make("summary", { textContent: "Predict the effect" }), label);
  let [question, round] = ["", -1];
  words.addEventListener("input", () => panel.keep({ words: { prediction: words.value } }));
  words.addEventListener("keydown", (event) => event.stopPropagation());

  function update(isPossible) {
    element.hidden = !isPossible;
    const now = panel.view.live.id;
    if (!isPossible || now === question) return;
    const typed = panel.draftWords("prediction");
    // A request that is steered comes again as another question: what was typed for its round and not sent stays.
    const wasSent = panel.predicted !== "" && panel.predicted === words.value.trim();
    if (typed || wasSent || panel.view.gate.round !== round) words.value = typed;
    else if (words.value) panel.keep({ words: { prediction: words.value } });
    [question, round, panel.predicted] = [now, panel.view.gate.round, ""];
    if (words.value || panel.view.gate.predicts) element.open = true; // who predicts once is asked again
  }

  return { element, update, told: () => (element.hidden || !words.value.trim() ? {} : { predicted: words.value.trim() }) };
}

const PREDICT = "Your prediction of counters or of the speedup. It is scored beside the author's, and changes nothing else.";

function decisionForm(panel) {
  const label = make("span", { class: "cgn-label" });
  const words = make("textarea", { rows: 3, class: "cgn-words" });
  const choice = make("select", { class: "cgn-choice" });
  const field = make("label", { class: "cgn-field" });
  const submit = button("", () => send(), { kind: "cgn-primary" });
  const cancel = button("Cancel", () => close(true), { kind: "cgn-quiet" });
  const element = make("div", { class: "cgn-form", role: "group", hidden: true }, field, submit, cancel);
  let kind = "";
  let opener = null;

  function open(which, from) {
    if (kind === which) return close(true);
    close(false);
    [kind, opener] = [which, from];
    opener.setAttribute("aria-expanded", "true");
    const texts = FORMS[which];
    const gate = panel.view.gate;
    const { versions, is_old: isOld, round } = panel.detail;
    const isOther = isOld && gate.round === round;
    const scope = isOther ? `For version ${currentVersion(versions)}, not the one shown. ` : "";
    tell(label, `${scope}${texts.label ?? texts[gate.gate]}`);
    element.setAttribute("aria-label", texts.submit);
    tell(submit, texts.submit);
    field.replaceChildren(label, which === "branch" ? choice : words); // a label names its first control only
    const revisions = gate.branches.map((item) => make("option", { value: String(item.round), textContent: item.label }));
    const isOne = revisions.length === 1; // of several none is likelier than the others
    choice.replaceChildren(...(isOne ? [] : [make("option", { value: "", textContent: "Choose a revision" })]), ...revisions);
    words.value = panel.draftWords(which);
    element.hidden = false;
    (which === "branch" ? choice : words).focus({ preventScroll: true });
  }

  function close(returnFocus) {
    if (!kind) return;
    const isInside = element.contains(element.getRootNode().activeElement);
    opener.setAttribute("aria-expanded", "false");
    if (returnFocus || isInside) opener.focus({ preventScroll: true });
    element.hidden = true;
    [kind, opener] = ["", null];
    panel.say("");
  }

  function send() {
    const reason = words.value.trim();
    const [which, from] = [kind, opener];
    if (!(which === "branch" ? choice.value : reason)) {
      panel.say(FORMS[which].missing);
      (which === "branch" ? choice : words).focus({ preventScroll: true });
      return;
    }
    close(true);
    panel.settle(which, which === "branch" ? { round: Number(choice.value) } : { reason }, from);
  }

  words.addEventListener("input", () => panel.keep({ words: { [kind]: words.value } }));

  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(true);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { element, open, close };
}
