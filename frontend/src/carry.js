// The author is a person: the request to copy into a chat, and the place to paste the reply.
import { button, copyText, enable, make, tell } from "./dom.js";

const CHECK_MS = 300;

export function carryBar(panel) {
  const title = make("h3", { class: "cgn-gate-title" });
  const steps = make("p", {
    class: "cgn-gate-text",
    textContent: "Copy the request, give it to any model, and paste its whole reply here. It is checked before it is taken.",
  });
  const happened = make("p", { class: "cgn-gate-note" });
  const where = make("p", { class: "cgn-muted", hidden: true });
  const copy = button("Copy the request", () => copyRequest(), { kind: "cgn-primary", twin: "%cutegen prompt" });
  const words = make("textarea", { rows: 6, class: "cgn-words cgn-reply", spellcheck: false });
  const field = make("label", { class: "cgn-field" }, make("span", { class: "cgn-label", textContent: "Reply" }), words);
  const lacks = make("p", { class: "cgn-lacks", role: "status", "aria-live": "polite" });
  const take = button("Hand in the reply", () => panel.decide("reply", { edited: words.value }), { twin: "%%cutegen reply" });
  const skip = button("No repair: decide now", (self) => panel.settle("skip", {}, self), {});
  const buttons = make("div", { class: "cgn-buttons", role: "group", "aria-label": "Reply" }, take, skip);
  const top = make("div", { class: "cgn-buttons" }, copy);
  const element = make("section", { class: "cgn-gate cgn-waiting cgn-carry", hidden: true }, title, happened, steps);
  element.append(top, field, lacks, buttons, where);
  element.setAttribute("aria-label", "Request to carry to a model");
  element.tabIndex = -1;
  let shown = "";
  let checking = 0;

  words.addEventListener("input", () => {
    panel.keep({ text: words.value });
    clearTimeout(checking);
    checking = setTimeout(check, CHECK_MS);
    update();
  });

  function check() {
    if (words.value.trim()) panel.send("checking", { question: panel.view.carry?.id ?? "", edited: words.value });
  }

  const copyRequest = () => copyText(panel.request.text, copy, "Copy the request", "Not copied: select the request below");

  /** Paths are shown from the notebook's folder; what is copied is the whole of them. */
  function showFiles([request, reply] = []) {
    where.hidden = !request;
    if (!request) return;
    where.replaceChildren("Or by files: the request is in ", ...path(request), ", its reply goes into ", ...path(reply), ".");
  }

  function path({ shown, whole }) {
    const copyPath = button("Copy path", (self) => copyText(whole, self, "Copy path"), { kind: "cgn-small" });
    copyPath.title = whole;
    copyPath.setAttribute("aria-label", `Copy the path ${whole}`);
    return [make("code", { title: whole, textContent: shown }), " ", copyPath];
  }

  function update() {
    const { carry } = panel.view;
    element.hidden = !carry || panel.isOver();
    if (!carry) return;
    if (carry.id !== shown) {
      shown = carry.id;
      words.value = panel.draftText() ?? "";
      if (words.value) check();
      showFiles(carry.files);
    }
    tell(title, `${carry.title} — you bring it`);
    tell(happened, carry.happened);
    happened.hidden = !carry.happened;
    copy.title = `${carry.size.toLocaleString("en")} characters. Same as %cutegen prompt`;
    const { checked } = panel;
    const isChecked = checked.question === carry.id && checked.text === words.value;
    const isEmpty = !words.value.trim();
    tell(lacks, isEmpty ? "" : isChecked ? checked.words : "Looking at it …");
    lacks.classList.toggle("cgn-bad-words", isChecked && !checked.ok && !isEmpty);
    enable(take, !isEmpty && isChecked && checked.ok && !panel.isSending());
    take.classList.toggle("cgn-primary", !isEmpty);
    copy.classList.toggle("cgn-primary", isEmpty);
    skip.hidden = !carry.can_skip;
    enable(skip, !panel.isSending());
    panel.parts?.bar.update();
  }

  return { element, update, title: () => title.textContent, answers: () => [copy, take] };
}
