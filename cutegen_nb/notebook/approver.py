"""The person of a notebook as an approver: the panel and the line magics decide at the same gates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from cutegen_nb.analysis.summary import deed
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.loop.lineage import passing

_AT_PROMPT = frozenset({Action.APPROVE, Action.STEER, Action.EDIT, Action.STOP})
_QUOTED = 200
"""Characters of a reason that are said back: the whole of it is in the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A decision that is waited for."""

    kind: str
    """``prompt`` or ``revision``."""
    session: Session
    """As it stands."""
    prompt: Prompt | None = None
    """At the prompt gate: what would be asked."""
    attempts: tuple[Attempt, ...] = ()
    """At the revision gate: the round's exchanges."""
    comparison: Comparison | None = None
    """At the revision gate: the candidate against the best before it."""

    @property
    def number(self) -> int:
        """Of the round that is decided on."""
        return len(self.session.rounds)

    @property
    def pending(self) -> Session:
        """The session with the round that is decided on, as if it had ended."""
        waiting = Round(
            number=self.number,
            stage=next((a.prompt.stage for a in self.attempts if a.prompt.stage), Stage.CORRECT),
            strategy=None,
            attempts=self.attempts,
            comparison=self.comparison,
            decisions=(),
            started_at="",
            seconds=0.0,
        )
        return replace(self.session, rounds=(*self.session.rounds, waiting))

    @property
    def text(self) -> str:
        """What EDIT replaces: the prompt, or the candidate's source."""
        if self.prompt is not None:
            return self.prompt.user
        return next((a.candidate.source for a in reversed(self.attempts) if a.candidate), "")

    @property
    def evaluation(self) -> Evaluation | None:
        """At the revision gate: what became of the candidate."""
        return next((a.evaluation for a in reversed(self.attempts) if a.candidate), None)

    @property
    def words(self) -> str:
        """What is waited for, in a sentence."""
        if self.kind == "prompt":
            return f"round {self.number}: the prompt waits for you: approve sends it; steer, edit, stop"
        found = self.evaluation
        label = f" ({found.label})" if found else ""
        return (
            f"round {self.number}: revision r{self.number}{label} waits for you: "
            "approve, reject, steer, edit, branch or stop"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person did, in the panel or by a magic."""

    action: Action
    """What was decided."""
    reason: str = ""
    """Words given with it."""
    edited: str = ""
    """For EDIT the new text; for BRANCH the revision to go on from."""
    gate: str = ""
    """The gate it was meant for; empty for whichever is open."""
    number: int | None = None
    """The round it was meant for; None for the present one."""
    parents: tuple[str, ...] = ()
    """For EDIT: digests of the revisions that the new text merges."""


class PanelApprover:
    """Waits at a gate until an answer that fits it arrives. Lives on the engine's loop."""

    def __init__(self, *, person: str, on_gate: Callable[[Gate | None], None]) -> None:
        self._by = f"person:{person}"
        self._on_gate = on_gate
        self._decided: asyncio.Future[Decision] | None = None
        self.gate: Gate | None = None
        """The gate that is open; None while nothing is asked."""

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:
        """Show the prompt, and wait."""
        return await self._wait(Gate(kind="prompt", session=session, prompt=prompt))

    async def review_revision(
        self, session: Session, attempts: Sequence[Attempt], comparison: Comparison | None
    ) -> Decision:
        """Show the candidate with its evidence, and wait."""
        return await self._wait(
            Gate(kind="revision", session=session, attempts=tuple(attempts), comparison=comparison)
        )

    async def _wait(self, gate: Gate) -> Decision:
        self._decided = asyncio.get_running_loop().create_future()
        # Shown first: whoever sees the gate open may answer at once and is not kept waiting by the drawing.
        self._on_gate(gate)
        self.gate = gate
        try:
            return await self._decided
        finally:
            self.gate = self._decided = None
            self._on_gate(None)

    def take(self, answer: Answer) -> str:
        """Decide, and say what was done. Raises UsageError, in a sentence, for what does not fit."""
        gate = self.gate
        if gate is None or self._decided is None or self._decided.done():
            raise UsageError(f"there is nothing to {answer.action.value}: no decision is waited for now")
        _check_meant(gate, answer)
        _check_fits(gate, answer)
        decision = Decision(
            gate=gate.kind,
            action=answer.action,
            by=self._by,
            reason=answer.reason.strip(),
            edited=answer.edited,
            parents=answer.parents,
        )
        self._decided.set_result(decision)
        what = "the prompt" if gate.kind == "prompt" else f"r{gate.number}"
        words = f": “{shorten(decision.reason, _QUOTED, placeholder=' …')}”" if decision.reason else ""
        if answer.action is Action.BRANCH:
            return f"Round {gate.number}: the next round goes on from {decision.edited}{words}."
        return f"Round {gate.number}: {what} {deed(decision)}{words}."


def _check_meant(gate: Gate, answer: Answer) -> None:
    """A click on what was shown a moment ago decides nothing about what is there now."""
    late = answer.gate not in {"", gate.kind} or answer.number not in {None, gate.number}
    if late:
        raise UsageError(
            f"that {answer.action.value} was meant for what was shown before, and nothing was decided; "
            f"{gate.words}"
        )


def _check_fits(gate: Gate, answer: Answer) -> None:
    action = answer.action
    if gate.kind == "prompt" and action not in _AT_PROMPT:
        raise UsageError(f"a prompt cannot be answered with {action.value}: approve, steer, edit or stop")
    if action is Action.APPROVE and gate.kind == "revision":
        _check_passed(gate)
    if action is Action.OVERRULE:
        _check_overrules(gate, answer)
    if action is Action.STEER and not answer.reason.strip():
        raise UsageError("steer needs words: what should the next request ask for?")
    if action is Action.EDIT and not answer.edited.strip():
        raise UsageError("the edited text is empty: nothing was decided")
    if action is Action.EDIT and answer.edited.strip() == gate.text.strip():
        raise UsageError("the edited text is what it was: approve it, or change something")
    if action is Action.BRANCH and passing(gate.session, answer.edited) is None:
        able = ", ".join(
            f"r{item.number}" for item in gate.session.rounds if item.evaluation and item.evaluation.passed
        )
        raise UsageError(
            f"there is no passing revision {answer.edited!r} to go on from: {able or 'none passed yet'}"
        )


def _check_passed(gate: Gate) -> None:
    found = gate.evaluation
    if found is None or not found.passed:
        label = found.label if found else "not evaluated"
        other = ", `%cutegen overrule WHY`" if found is not None and found.may_be_overruled else ""
        raise UsageError(
            f"r{gate.number} is {label}, and only what passed can be built upon: reject, edit{other} or stop"
        )


def _check_overrules(gate: Gate, answer: Answer) -> None:
    found = gate.evaluation
    if found is None or not found.may_be_overruled:
        label = found.label if found else "not evaluated"
        raise UsageError(
            f"r{gate.number} is {label}, which rests on no inference: there is nothing to overrule"
        )
    if not answer.reason.strip():
        raise UsageError("overrule needs words: why is the evidence wrong? They are recorded with it")
