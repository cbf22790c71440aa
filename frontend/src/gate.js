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
  branch: { label: "Go on from", submit: "Branch", missing: "There is no revision to branch from." },
};

export function gateBar(panel) {
  const title = make("h3", { class: "cgn-gate-title" });
  const text = make("p", { class: "cgn-gate-text" });
  const whyNot = make("p", { class: "cgn-gate-note" });
  const look = button("", () => panel.select(panel.view.gate.round), { kind: "cgn-link" });
  const approve = button("Approve", () => panel.decide("approve"), { kind: "cgn-primary" });
  const reject = button("Reject…", (self) => turnTo(form, self, "reject"), { twin: "%cutegen reject WHY" });
  const steer = button("Steer…", (self) => turnTo(form, self, "steer"), { twin: "%cutegen steer WORDS" });
  const edit = button("", () => panel.decide("edit", { edited: panel.edited() }), { twin: "%cutegen edit" });
  const restore = button("Undo my edit", () => panel.restore(), { kind: "cgn-quiet" });
  const branch = button("Branch…", (self) => turnTo(form, self, "branch"), { twin: "%cutegen branch r1" });
  const mix = button("Merge…", (self) => turnTo(merge, self), { twin: "%cutegen merge r3 r4:1,2" });
  const overrule = button("Overrule…", (self) => turnTo(form, self, "overrule"), { twin: "%cutegen overrule WHY" });
  const form = decisionForm(panel);
  const merge = mergeForm(panel);
  const buttons = make("div", { class: "cgn-buttons", role: "group" });
  buttons.append(approve, reject, steer, edit, restore, branch, mix, overrule);
  const element = make("section", { class: "cgn-gate" }, title, text, whyNot, look, buttons);
  element.append(form.element, merge.element);
  let question = "";
  let openedAt = 0;

  /** Opens a form below the buttons in the place of the other. */
  function turnTo(which, self, ...kind) {
    (which === form ? merge : form).close(false);
    which.open(...kind, self);
  }

  function update() {
    const { gate, live } = panel.view;
    const isOpen = Boolean(gate) && !panel.isOver();
    const isPrompt = gate ? gate.gate === "prompt" : live.gate === "prompt";
    element.classList.toggle("cgn-waiting", isOpen);
    element.hidden = panel.isOver() && !element.contains(element.getRootNode().activeElement);
    if ((gate?.id ?? "") !== question) {
      question = gate?.id ?? "";
      openedAt = Date.now();
      form.close(false);
      merge.close(false);
      if (isOpen) setTimeout(update, SETTLE_MS + 10);
    }
    const isReady = isOpen && !panel.isSending() && Date.now() - openedAt >= SETTLE_MS;
    buttons.setAttribute("aria-label", isOpen ? `Decision on r${gate.round}` : "Decision");
    tell(title, isOpen ? `${gate.title} — ${isPrompt ? "send this request?" : "build on it?"}` : "Nothing to decide now");
    tell(text, isOpen ? gate.text : "You are asked here before the next request and after each evaluation.");
    tell(whyNot, isOpen ? gate.why_not : "");
    whyNot.hidden = !isOpen || !gate.why_not;
    const isElsewhere = isOpen && panel.view.selected !== gate.round;
    tell(look, isOpen ? `Show r${gate.round}` : "");
    conceal(look, !isElsewhere);
    if (isOpen) {
      tell(approve, isPrompt ? "Ask" : "Approve");
      approve.title = "Same as %cutegen approve";
      tell(edit, isPrompt ? "Send edited" : "Evaluate my edit");
      conceal(reject, isPrompt);
      conceal(branch, isPrompt || !gate.branches.length);
      conceal(mix, isPrompt || !gate.merges.length);
      conceal(overrule, isPrompt || !gate.can_overrule);
    }
    const isEdited = isOpen && !isElsewhere && panel.isEdited();
    edit.hidden = !edit.textContent;
    enable(approve, isReady && gate.can_approve);
    enable(reject, isReady && !isPrompt);
    enable(steer, isReady);
    enable(branch, isReady && !isPrompt && gate.branches.length > 0);
    enable(mix, isReady && !isPrompt && gate.merges.length > 0);
    enable(overrule, isReady && !isPrompt && gate.can_overrule);
    enable(edit, isReady && isEdited);
    merge.update();
    edit.title = isEdited ? "Same as %cutegen edit" : "Change the text below first";
    conceal(restore, !isEdited);
    enable(restore, isEdited);
  }

  return { element, update };
}

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
    tell(label, texts.label ?? texts[gate.gate]);
    element.setAttribute("aria-label", texts.submit);
    tell(submit, texts.submit);
    field.replaceChildren(label, which === "branch" ? choice : words); // a label names its first control only
    choice.replaceChildren(
      ...gate.branches.map((item) => make("option", { value: String(item.round), textContent: item.label })),
    );
    if (gate.branches.length) choice.selectedIndex = gate.branches.length - 1;
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
  }

  function send() {
    const reason = words.value.trim();
    if (kind === "branch") panel.decide("branch", { round: Number(choice.value) });
    else if (!reason) {
      panel.say(FORMS[kind].missing);
      words.focus({ preventScroll: true });
      return;
    } else {
      panel.decide(kind, { reason });
      words.value = "";
    }
    close(true);
  }

  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(true);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { element, open, close };
}
