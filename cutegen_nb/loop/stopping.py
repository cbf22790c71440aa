"""Stopping rules of a session; pure functions that return a sentence or None.

The rules run before each round, in the order of `RULES`. The budgets are in ``spending``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.estimate.targets import EstimateTarget, target_of
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.history.ended import stored_stop
from cutegen_nb.analysis.history.spending import is_counted
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Action, Round, ended_text
from cutegen_nb.core.session import Schedule, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.lineage import ended_on, line_of, parent_digest
from cutegen_nb.loop.menu import left_for_a_gpu, obstacles, without_hope
from cutegen_nb.loop.spending import budget_spent
from cutegen_nb.loop.stages import PAPER_LAST_DEPTH, next_step, optimisation_rounds

ROOF_FRACTION = 0.95
"""Share of the roof (GPU) or of the least traffic (simulator) from which nothing is left to gain."""

_WITH_TENSOR_CORES = frozenset({
    WorkloadClass.MATMUL, WorkloadClass.CONVOLUTION, WorkloadClass.ATTENTION, WorkloadClass.FUSED,
})  # fmt: skip
"""Classes for which each architecture has instructions of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopInput:
    """Input of the stopping rules."""

    session: Session
    """The session so far."""
    menu: tuple[Strategy, ...]
    """Strategies that the author can carry out for this problem."""
    target: EstimateTarget | None = None
    """GPU that times are estimated for where none runs the candidates; None for `target_of` the session."""
    since: int = 0
    """Number of rounds stored before the session was resumed; their failures do not stop it again."""


Rule = Callable[[StopInput], str | None]
"""Stopping rule: returns the sentence of its reason, or None."""


def stop_reason(situation: StopInput) -> str:
    """Sentence of the first rule that applies; empty while the session may go on."""
    return next((text for rule in RULES if (text := rule(situation))), "")


def stopped_by_decision(item: Round) -> str:
    """Return a sentence if somebody stopped the session at the round's gate; empty otherwise."""
    decision = next((d for d in item.decisions if d.action is Action.STOP), None)
    if decision is None:
        return ""
    return stored_stop(decision.by, f"at round {item.number}", decision.reason)


def is_unasked(item: Round) -> bool:
    """Return whether somebody stopped the session while the round's request waited to be sent."""
    made = item.decisions[-1] if item.decisions else None
    return made is not None and made.gate == "prompt" and made.action is Action.STOP


def roof_share(session: Session, evaluation: Evaluation) -> float | None:
    """Ratio of the hardware limit to a passing candidate's cost, 0–1; None where neither is known.

    On a GPU the roofline's floor ÷ median latency. On the simulator least bytes ÷ bytes moved. Both at the
    size that ran.
    """
    roof = place(session.facts, session.device, evaluation)
    if roof.sol_fraction is not None:
        return roof.sol_fraction
    return 1 / roof.moved_over_least if roof.moved_over_least else None


def _budget_spent(situation: StopInput) -> str | None:
    return budget_spent(situation.session) or None


def _paper_depth_reached(situation: StopInput) -> str | None:
    session = situation.session
    if session.plan.schedule is not Schedule.PAPER or optimisation_rounds(session) < PAPER_LAST_DEPTH:
        return None
    return f"the paper's schedule ends after {PAPER_LAST_DEPTH} optimisation rounds"


def _author_failed(situation: StopInput) -> str | None:
    rounds = situation.session.rounds
    if len(rounds) <= situation.since:
        return None
    last = rounds[-1]
    if last.candidate is not None or not last.note or any(attempt.reply for attempt in last.attempts):
        return None
    declined = next((a.evaluation for a in last.attempts if a.evaluation), None)
    if declined is not None and situation.session.best is not None:
        return None
    return last.note


def _evaluator_failed(situation: StopInput) -> str | None:
    rounds = situation.session.rounds
    if len(rounds) <= situation.since:
        return None
    last = rounds[-1]
    unjudged = last.candidate is not None and last.evaluation is None
    return f"no evaluation could be had: {last.note}" if unjudged else None


def _repeats_itself(situation: StopInput) -> str | None:
    """Stop on a repeated failing kernel: before anything passed, such an author would go on repeating it."""
    rounds = situation.session.rounds
    if situation.session.best is not None or len(rounds) < 2:  # noqa: PLR2004 - a pair
        return None
    last, earlier = rounds[-1], rounds[:-1]
    if last.candidate is None or parent_digest(last):
        return None
    same = any(item.candidate and item.candidate.digest == last.candidate.digest for item in earlier)
    return (
        f"the author wrote the same kernel again and it does not pass (round {last.number})" if same else None
    )


def roof_reached(situation: StopInput) -> str | None:
    """Stop when a measured time reaches the roof. Counts at the least traffic alone stop no session."""
    session = situation.session
    evaluation = session.best.evaluation if session.best else None
    share = roof_share(session, evaluation) if evaluation and evaluation.timing else None
    if share is None or share < ROOF_FRACTION:
        return None
    return f"the best revision runs at {share:.2f} of the roof"


def _nothing_left(situation: StopInput) -> str | None:
    """Stop at DONE: menu and tuning are exhausted on the revision that would be the parent."""
    session = situation.session
    step = next_step(session, situation.menu, target=situation.target)
    if step.stage is not Stage.DONE or step.parent is None:
        return None
    text = f"every strategy was tried on r{step.parent.number}{_for_another_target(situation)}"
    text += _declined_text(session, step.parent)
    evaluation = step.parent.evaluation
    share = roof_share(session, evaluation) if evaluation else None
    if share is not None and share >= ROOF_FRACTION and evaluation and not evaluation.timing:
        text += f", which moves {1 / share:.2f}× the least bytes"
    text += _tried_text(session, step.parent)
    text += _ended_text(session, step.parent) + _obstacles_text(session, situation.menu, step.parent)
    hopeless = without_hope(session, situation.menu, step.parent, situation.target)
    if hopeless:
        text += f"; worth no round by the estimate: {', '.join(hopeless)}"
    waiting = left_for_a_gpu(session, situation.menu, step.parent)
    if waiting:
        text += f"; left for a GPU, as counts cannot show what they gain: {', '.join(waiting)}"
    return text


def _for_another_target(situation: StopInput) -> str:
    """Offer the strategies of the GPU that times are estimated for, if kernels are compiled for another."""
    session = situation.session
    target, compiled_for = situation.target or target_of(session.device), session.device.architecture
    is_timed = session.device.kind is DeviceKind.GPU
    is_same = target.sheet.architecture == compiled_for.removesuffix("a")  # the sheet of an H200 says sm_90
    if is_timed or is_same or session.facts.workload_class not in _WITH_TENSOR_CORES:
        return ""
    name = shlex.quote(target.sheet.product)
    return f", for {compiled_for} (`--target {name}` may have others)"


def _tried_text(session: Session, parent: Round) -> str:
    """Name the strategies that were tried on `parent` or on the way to it, each with its round."""
    here = parent.candidate.digest if parent.candidate else ""
    numbers = {item.number for item in line_of(session, parent)}
    tried = [
        f"{item.strategy.name} (r{item.number})"
        for item in session.rounds
        if item.strategy and item.candidate and (item.number in numbers or parent_digest(item) == here)
    ]
    return f"; tried: {', '.join(tried)}" if tried else ""


def _declined_text(session: Session, parent: Round) -> str:
    """Tell which strategies the author declined on `parent`: those were offered and never carried out."""
    here = parent.candidate.digest if parent.candidate else ""
    refused = [
        (item.strategy.name, item.note)
        for item in session.rounds
        if item.strategy
        and item.candidate is None
        and is_counted(item)
        and item.note
        and parent_digest(item) == here
        and not item.ended
    ]
    if not refused:
        return ""
    return f", but the author declined {', '.join(name for name, _ in refused)}: {refused[-1][1].rstrip('.')}"


def _ended_text(session: Session, parent: Round) -> str:
    ended = ended_text(ended_on(session, parent))
    return f"; the author ended {ended}" if ended else ""


def _obstacles_text(session: Session, menu: Sequence[Strategy], parent: Round) -> str:
    """Tell which strategies were never tried: carried out already, or excluded, with the figure behind it."""
    found = obstacles(session, menu, parent)
    done = ", ".join(item.strategy for item in found if item.done)
    unfit = "; ".join(f"{item.strategy} ({item.reason})" for item in found if not item.done)
    text = f"; carried out already: {done}" if done else ""
    return text + (f"; cannot help here: {unfit}" if unfit else "")


RULES: tuple[Rule, ...] = (
    _author_failed,
    _evaluator_failed,
    _repeats_itself,
    roof_reached,
    _nothing_left,
    _paper_depth_reached,
    _budget_spent,
)
"""Stopping rules, in the order of evaluation."""
