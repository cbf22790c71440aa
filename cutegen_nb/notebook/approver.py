"""Approval gates of a notebook: the panel and the line magics answer the same open gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from cutegen_nb.analysis.history.ended import short_reason
from cutegen_nb.analysis.history.ledger import without_quote
from cutegen_nb.analysis.history.summary import decision_word
from cutegen_nb.analysis.population.epochs import decision_sentence
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Attempt, Decision, Epoch, Prediction, Prompt, Round, opening
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.loop.notes import round_note
from cutegen_nb.loop.population.gate import check_decision
from cutegen_nb.prompting.predicted import predicted

_AT_PROMPT = frozenset({Action.APPROVE, Action.STEER, Action.EDIT, Action.STOP})
_AT_EPOCH = frozenset(
    {Action.APPROVE, Action.STOP, Action.PIN, Action.DROP, Action.REQUEST, Action.FORBID, Action.BUDGET}
)
_QUOTED = 200
"""Characters of a reason that the confirmation repeats; the record holds all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Gate at which the session waits for a person's decision."""

    kind: str
    """``prompt``, ``revision`` or ``epoch``."""
    session: Session
    """Session with its finished rounds."""
    prompt: Prompt | None = None
    """At the prompt gate: the prompt that approval sends."""
    attempts: tuple[Attempt, ...] = ()
    """At the revision gate: the round's exchanges with the author."""
    comparison: Comparison | None = None
    """At the revision gate: comparison of the candidate with the best revision so far."""

    made: tuple[Decision, ...] = ()
    """At the revision gate: decisions of this round so far, such as the prediction sent with its request."""

    draft: Epoch | None = None
    """At the epoch gate: the epoch with the decisions made so far."""

    @property
    def number(self) -> int:
        """Number of the round that the decision is for; of the epoch at its gate."""
        return self.draft.number if self.draft else len(self.session.rounds)

    @property
    def id(self) -> str:
        """Identifier of the open question, so that an answer to another one can be refused."""
        asked = self.prompt.digest[:12] if self.prompt else len(self.attempts)
        if self.draft is not None:
            asked = len(self.draft.decisions)
        return f"{self.kind}:{self.number}:{asked}"

    def with_pending(self, session: Session) -> Session:
        """Append the round at this gate to its session, so that every view can show it.

        Without a candidate, as at the prompt gate, the session is returned unchanged.
        """
        if not self.attempts:
            return session
        pending = Round(
            number=len(session.rounds),
            stage=opening(self.attempts).prompt.stage or Stage.CORRECT,
            strategy=opening(self.attempts).prompt.strategy,
            attempts=self.attempts,
            comparison=self.comparison,
            decisions=self.made,
            started_at="",
            seconds=0.0,
            note=round_note(self.attempts),
        )
        return replace(session, rounds=(*session.rounds, pending))

    @property
    def text(self) -> str:
        """Text that EDIT replaces: the prompt, or the source of the last candidate."""
        if self.prompt is not None:
            return self.prompt.user
        return next((a.candidate.source for a in reversed(self.attempts) if a.candidate), "")

    @property
    def evaluation(self) -> Evaluation | None:
        """Evaluation of the last candidate; None at the prompt gate."""
        return next((a.evaluation for a in reversed(self.attempts) if a.candidate), None)

    @property
    def is_better(self) -> bool:
        """True if the next round starts from the revision at this gate once it is approved."""
        return self.comparison is None or self.comparison.relation.is_better

    @property
    def question(self) -> str:
        """Question of the prompt gate or the revision gate, in a few words."""
        if self.prompt is not None:
            return "send the request"
        if self.evaluation is None or not self.evaluation.stands:
            return "mend or reject it"
        return "build on it" if self.is_better else "keep it"

    @property
    def without_kernel(self) -> str:
        """Sentence on why the round before brought no kernel; empty where it brought one."""
        last = self.session.rounds[-1] if self.session.rounds else None
        if last is None or not last.attempts or last.candidate is not None:
            return ""
        return f"No kernel came in r{last.number}: {short_reason(last.note)[0].rstrip('.')}."

    @property
    def words(self) -> str:
        """Sentence that names the open decision and its possible answers."""
        if self.kind == "prompt":
            return f"round {self.number}: the prompt waits for you: approve sends it; steer, edit, stop"
        if self.kind == "epoch":
            return f"epoch {self.number} waits for you: approve, pin, drop, request, forbid, budget or stop"
        found = self.evaluation
        label = f" ({found.label})" if found else ""
        return (
            f"round {self.number}: revision r{self.number}{label} waits for you: "
            "approve, reject, steer, edit, branch or stop"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Decision of a person, made in the panel or by a magic."""

    action: Action
    """Action that was chosen."""
    reason: str = ""
    """Words given with the action."""
    edited: str = ""
    """New text for EDIT; label of the revision to go on from for BRANCH."""
    gate: str = ""
    """Kind of the gate that the answer is for; empty for the open one."""
    number: int | None = None
    """Round that the answer is for; None for the present one."""
    parents: tuple[str, ...] = ()
    """Digests of the revisions that the new text of an EDIT merges; empty for no merge."""
    predicted: str = ""
    """The person's prediction for the round, in words; empty for none."""


class PanelApprover:
    """Approver that waits at a gate for a fitting answer. Used on the engine's event loop only."""

    def __init__(self, *, person: str, on_gate: Callable[[Gate | None], None]) -> None:
        self._by = f"person:{person}"
        self._on_gate = on_gate
        self._decided: asyncio.Future[Decision] | None = None
        self._made: list[tuple[int, Decision]] = []
        self.gate: Gate | None = None
        """Open gate; None while no decision is pending."""
        self.sent = ""
        """Confirmation of the latest request; out of date once the revision of that request has arrived."""

    @property
    def latest(self) -> Decision | None:
        """Latest decision; None before the first."""
        return self._made[-1][1] if self._made else None

    def resume(self, number: int, made: Sequence[Decision]) -> None:
        """Take over the decisions that were made for round `number` before an interruption."""
        self._made = [(number, decision) for decision in made]

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:
        """Open the prompt gate and wait for the decision."""
        return await self._wait(Gate(kind="prompt", session=session, prompt=prompt))

    async def review_revision(
        self, session: Session, attempts: Sequence[Attempt], comparison: Comparison | None
    ) -> Decision:
        """Open the revision gate and wait for the decision."""
        return await self._wait(
            Gate(
                kind="revision",
                session=session,
                attempts=tuple(attempts),
                comparison=comparison,
                made=self._made_in(len(session.rounds)),
            )
        )

    def _made_in(self, number: int) -> tuple[Decision, ...]:
        """Return the decisions taken here for a round that is not finished yet."""
        return tuple(decision for at, decision in self._made if at == number)

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:
        """Open the gate of an epoch and wait for the decision."""
        return await self._wait(Gate(kind="epoch", session=session, draft=draft))

    async def _wait(self, gate: Gate) -> Decision:
        self._decided = asyncio.get_running_loop().create_future()
        # Drawn before the gate opens, so that an answer to an open gate does not wait for the drawing.
        self._on_gate(gate)
        self.gate = gate
        try:
            return await self._decided
        finally:
            self.gate = self._decided = None
            self._on_gate(None)

    def take(self, answer: Answer) -> str:
        """Apply an answer to the open gate and return a sentence that confirms it.

        Raises UsageError when no gate is open, or the answer does not fit the open one.
        """
        gate = self.gate
        if gate is None or self._decided is None or self._decided.done():
            if answer.action in _AT_EPOCH - _AT_PROMPT:
                raise UsageError(
                    f"{answer.action.value} is for the end of an epoch, and none waits for you now"
                )
            raise UsageError(f"there is nothing to {answer.action.value}: no decision is waited for now")
        _check_is_current(gate, answer)
        _check_fits(gate, answer)
        decision = Decision(
            gate=gate.kind,
            action=answer.action,
            by=self._by,
            reason=answer.reason.strip(),
            edited=answer.edited,
            parents=answer.parents,
            prediction=_prediction(gate, answer),
        )
        self._made = [*((at, one) for at, one in self._made if at == gate.number), (gate.number, decision)]
        self._decided.set_result(decision)
        if gate.kind == "epoch":
            return f"Epoch {gate.number}: {shorten(decision_sentence(decision), _QUOTED, placeholder=' …')}."
        if gate.kind == "prompt" and answer.action in {Action.APPROVE, Action.EDIT}:
            edited = " as you edited it" if answer.edited else ""
            self.sent = f"The request for r{gate.number} was sent{edited}."
            return self.sent
        what = "the prompt" if gate.kind == "prompt" else f"r{gate.number}"
        if answer.action is Action.EDIT and (version := _restored(gate, answer.edited)):
            return f"{what}: version {version} restored."
        reason = shorten(without_quote(decision.reason), _QUOTED, placeholder=" …")
        words = f": “{reason}”" if reason else ""
        if answer.action is Action.STOP:
            where = f"at the request of round {gate.number}" if gate.kind == "prompt" else f"at {what}"
            return f"Stopped {where}{words}; finished rounds are kept."
        if answer.action is Action.BRANCH:
            return f"Round {gate.number}: the next round goes on from {decision.edited}{words}."
        again = _asked_again(gate) if answer.action is Action.REJECT else ""
        return f"Round {gate.number}: {what} {decision_word(decision)}{words}.{again}"


def _asked_again(gate: Gate) -> str:
    """Sentence on how a strategy whose kernel passed is tried with other numbers; empty for other rounds."""
    strategy = opening(gate.attempts).prompt.strategy if gate.attempts else None
    if strategy is None or gate.evaluation is None or not gate.evaluation.stands:
        return ""
    return (
        f" {strategy.name} is not offered again on the same kernel; name it in a steer to try it once more."
    )


def _prediction(gate: Gate, answer: Answer) -> Prediction | None:
    """Return the person's prediction for the round that is asked for; None without one.

    Raises UsageError for words that name nothing that is measured, so that they are not lost.
    """
    words = answer.predicted.strip()
    if not words:
        return None
    if gate.kind != "prompt":
        raise UsageError("a prediction is made before the request is sent, not of what was measured already")
    found = predicted(f"Predicted effect: {' '.join(words.split())}")
    if found is None or not (found.changes or found.speedup):
        raise UsageError(
            f"the prediction {words!r} names nothing that is measured: say for example "
            "`gmem_sectors down 75 %`, `warp_instructions unchanged` or `2× faster`"
        )
    return found


def _restored(gate: Gate, source: str) -> int:
    """Return the number of the version of the round's kernel that has this source; 0 for a new source."""
    made = dict.fromkeys(attempt.candidate.source for attempt in gate.attempts if attempt.candidate)
    return next((number for number, one in enumerate(made, start=1) if one == source), 0)


def restoring(gate: Gate | None, attempt: object) -> Answer:
    """Return the EDIT answer that puts an earlier version of the round's kernel at the gate again.

    `attempt` is the index of the attempt that gave it. Raises UsageError where there is no such version.
    """
    made = gate.attempts if gate else ()
    if gate is None or not isinstance(attempt, int) or not 0 <= attempt < len(made):
        raise UsageError("that version is not of the revision that waits now, and nothing was changed")
    candidate = made[attempt].candidate
    if candidate is None:
        raise UsageError(f"exchange {attempt + 1} gave no kernel, and nothing was changed")
    return Answer(action=Action.EDIT, edited=candidate.source, gate=gate.kind, number=gate.number)


def _check_is_current(gate: Gate, answer: Answer) -> None:
    """Refuse an answer to another gate or round, such as a click on an outdated panel. Raises UsageError."""
    late = answer.gate not in {"", gate.kind} or answer.number not in {None, gate.number}
    if late:
        raise UsageError(
            f"that {answer.action.value} was meant for what was shown before, and nothing was decided; "
            f"{gate.words}"
        )


def _check_fits(gate: Gate, answer: Answer) -> None:
    action = answer.action
    if (gate.kind == "epoch") != (action in _AT_EPOCH) and action not in {Action.APPROVE, Action.STOP}:
        raise UsageError(f"{action.value} is no answer here; {gate.words}")
    if gate.draft is not None:
        decision = Decision(gate=gate.kind, action=action, by="", edited=answer.edited)
        check_decision(gate.session, gate.draft, decision)
    if gate.kind == "prompt" and action not in _AT_PROMPT:
        raise UsageError(f"a prompt cannot be answered with {action.value}: approve, steer, edit or stop")
    if action is Action.APPROVE and gate.kind == "revision":
        _check_passed(gate)
    if action is Action.OVERRULE:
        _check_overrules(gate, answer)
    if action is Action.STEER and not answer.reason.strip():
        raise UsageError("steer needs words: what should the next request ask for?")
    if action is Action.REJECT and not answer.reason.strip():
        raise UsageError("reject needs words: why? The author is told")
    if action is Action.EDIT and not answer.edited.strip():
        raise UsageError("the edited text is empty: nothing was decided")
    if action is Action.EDIT and answer.edited.strip() == gate.text.strip():
        raise UsageError("the edited text is what it was: approve it, or change something")
    if action is Action.BRANCH and gate.session.passing(answer.edited) is None:
        able = ", ".join(
            f"r{item.number}" for item in gate.session.rounds if item.evaluation and item.evaluation.passed
        )
        raise UsageError(
            f"there is no passing revision {answer.edited!r} to go on from: {able or 'none passed yet'}"
        )


def _check_passed(gate: Gate) -> None:
    found = gate.evaluation
    if found is None or not found.stands:
        why = found.shortfall if found else "it was not evaluated"
        other = ", `%cutegen overrule WHY`" if found is not None and found.may_be_overruled else ""
        raise UsageError(f"r{gate.number} cannot be approved: {why}. Reject it, edit it{other} or stop")


def _check_overrules(gate: Gate, answer: Answer) -> None:
    found = gate.evaluation
    if found is None or not found.may_be_overruled:
        why = found.why_not_overruled if found else "it was not evaluated"
        raise UsageError(f"r{gate.number} cannot be overruled: {why}")
    if not answer.reason.strip():
        raise UsageError("overrule needs words: why is the evidence wrong? They are recorded with it")


def answer_from(message: dict[str, object]) -> Answer:
    """Convert an action of the panel to an answer. Raises UsageError for an unknown action."""
    word, number = str(message.get("action", "")), message.get("round", -1)
    if word not in set(Action):
        raise UsageError(f"the panel sent an unknown action {word!r}: load the page again")
    edited = str(message.get("edited", ""))
    if word == Action.BRANCH and not edited.strip():
        edited = f"r{number}"
    return Answer(
        action=Action(word),
        reason=str(message.get("reason", "")),
        edited=edited,
        gate=str(message.get("gate", "")),
        predicted=str(message.get("predicted", "")),
    )
