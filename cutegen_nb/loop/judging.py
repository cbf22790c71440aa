"""Evaluation of a round's candidate and its comparison with the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cutegen_nb.analysis.estimate.targets import target_of
from cutegen_nb.analysis.hardware.roofline import refuse_above_roof
from cutegen_nb.analysis.history.compare import compare
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.round import Attempt
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.stages import Step
from cutegen_nb.loop.versions import judged_before, same_as, stands


async def evaluate_attempt(
    session: Session, effects: Effects, attempt: Attempt, step: Step, before: Sequence[Attempt] = ()
) -> Attempt:
    """Evaluate the attempt's candidate; a fault of the evaluator goes to `problem`.

    The verdict on the same source is taken over from an earlier round, or from the attempts `before` it.
    On the simulator, a candidate that would become the best is evaluated again at tier B, and that evaluation
    counts. On a GPU, one evaluation at tier B skips the closer checks for a candidate no faster than its
    rival; it takes the GPU's counters where the stage shows them.
    """
    if attempt.candidate is None:
        return attempt
    known = judged_before(session, before, attempt.candidate)
    if known is not None and not _wants_closer_look(session, effects, attempt.candidate, known):
        return replace(attempt, evaluation=known)
    counted = session.plan.shows_counters(step.stage) and session.device.kind is DeviceKind.GPU
    evaluate, problem = effects.evaluator.evaluate, session.problem
    rival = _rival(session)
    if rival is not None:
        evaluate = partial(evaluate, rival=rival)
    try:
        if session.device.kind is DeviceKind.GPU:
            # One worker compiles the candidate once; its first timing decides on the checks above tier A.
            look = partial(evaluate, profile=counted, only_if_faster=rival is not None)
            found = _held(session, await look(problem, attempt.candidate, effects.progress, Tier.B))
            return replace(attempt, evaluation=found)
        found = _held(session, await evaluate(problem, attempt.candidate, effects.progress))
        if _wants_closer_look(session, effects, attempt.candidate, found):
            effects.progress("looking closer: it may become the best")
            closer = _held(session, await evaluate(problem, attempt.candidate, effects.progress, Tier.B))
            found = replace(closer, duration_s=found.duration_s + closer.duration_s)
    except EvaluatorError as error:
        return replace(attempt, problem=str(error))
    return replace(attempt, evaluation=found)


def _wants_closer_look(session: Session, effects: Effects, candidate: Candidate, found: Evaluation) -> bool:
    """Return whether the candidate would become the best by an evaluation at tier A."""
    comparison = comparison_with_best(session, effects, candidate, found)
    return found.tier is Tier.A and comparison is not None and comparison.relation.is_better


def _held(session: Session, found: Evaluation) -> Evaluation:
    return refuse_above_roof(session.facts, session.device, found)


def _rival(session: Session) -> Candidate | None:
    """Candidate to time beside the new one: the best before; None where the best has no timing."""
    best = session.best
    return best.candidate if best and best.evaluation and best.evaluation.timing else None


def comparison_with_best(
    session: Session, effects: Effects, candidate: Candidate, evaluation: Evaluation
) -> Comparison | None:
    """Compare with the best so far; None for a candidate that did not pass."""
    if not evaluation.passed:
        return None
    best = session.best
    target = effects.target or target_of(session.device)
    found = compare(best.evaluation if best else None, evaluation, session.facts, target=target)
    found = replace(found, against=best.candidate.digest if best and best.candidate else "")
    same = same_as(session, candidate)
    if not same:
        return found
    return replace(found, relation=Relation.CANNOT_TELL, reason=stands(candidate), same_as=same)
