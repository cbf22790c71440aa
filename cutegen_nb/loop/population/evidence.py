"""Evidence on one kernel of a population, in the words of a request for a strategy; pure."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.bottleneck.full_grid import is_scaled
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.figures.quantity import duration, interval, times
from cutegen_nb.analysis.history.summary import revision
from cutegen_nb.analysis.strategy.alignment import statement_of
from cutegen_nb.analysis.strategy.conditions import Circumstances, holds
from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits
from cutegen_nb.analysis.strategy.optimisations import in_force
from cutegen_nb.analysis.tables.counts import kernel_name
from cutegen_nb.core.device import Device
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.profile import Counters, LaunchProfile
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.knowledge import AppliedStrategy
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Condition, Optimisation
from cutegen_nb.core.timing import Timing
from cutegen_nb.loop.asking import device_of_figures, limit_lines, resource_lines
from cutegen_nb.loop.lineage import line_of, parent_evaluation
from cutegen_nb.loop.menu import circumstances, parent_estimate
from cutegen_nb.prompting.feedback import counters_text
from cutegen_nb.prompting.strategy_prompts import MemberEvidence, ShownOptimisations

_FOR_REUSE = frozenset({Optimisation.TENSOR_CORES, Optimisation.REGISTER_BLOCKS})
"""Optimisations that no kernel lacks where no element is used often."""


def member_evidence(session: Session, item: Round, target: EstimateTarget | None = None) -> MemberEvidence:
    """Collect what is known of the kernel of a round: speed, strategies, optimisations, counts and limit.

    Without a GPU figures and estimates are those of `target`, by default `target_of` the session's device.
    """
    device = device_of_figures(session, target)
    evaluation = parent_evaluation(session, item)
    here = circumstances(session, item)
    carried_out, lacking = _optimisations(here)
    claims = item.aligned.not_told if item.aligned else ()
    # The zone belongs to the problem, which the request describes once.
    return MemberEvidence(
        revision=revision(item),
        standing=_standing(session, item, target),
        line=line_to(session, item),
        in_force=carried_out,
        lacking=lacking,
        # Counters that were measured later may confirm or refute a claim.
        not_told=tuple(name.value for name in claims if in_force(name, here.traits) is None),
        evaluation=_counts(session.facts, device, evaluation) if evaluation else "",
        diagnosis=limit_lines(session, item, device, target),
    )


def shown_optimisations(session: Session, item: Round, parent: Round) -> ShownOptimisations:
    """Optimisations that the kernel of a round carries out or lacks, beside those of its parent."""
    in_force_now, lacking = _optimisations(circumstances(session, item))
    return ShownOptimisations(
        in_force=in_force_now,
        lacking=lacking,
        before=_optimisations(circumstances(session, parent))[0],
    )


def kernel_traits_of(session: Session, item: Round) -> KernelTraits:
    """Read the traits of the kernel of a round, with the counters that a later round took of it."""
    return circumstances(session, item).traits


def line_to(session: Session, item: Round) -> tuple[AppliedStrategy, ...]:
    """List the strategies from the first kernel to a round, oldest first, as their code carries them out."""
    return tuple(
        AppliedStrategy(
            name=one.strategy.name,
            statement=statement_of(one.strategy, one.aligned),
        )
        for one in reversed(line_of(session, item))
        if one.strategy is not None
    )


def _optimisations(here: Circumstances) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Optimisations that a kernel carries out and those that it lacks, with their figures."""
    answers = [(name, in_force(name, here.traits)) for name in Optimisation]
    reused = holds(Condition.OPERANDS_REUSED, here)
    useless = _FOR_REUSE if reused and not reused[0] else frozenset()
    told = [(name, answer[0], f"{name.value}: {answer[1]}") for name, answer in answers if answer is not None]
    return (
        tuple(text for _, held, text in told if held),
        tuple(text for name, held, text in told if not held and name not in useless),
    )


def _standing(session: Session, item: Round, target: EstimateTarget | None) -> str:
    """Speed of a round's kernel in a sentence or two: measured, else estimated, else unknown."""
    first = (line_of(session, item) or [item])[-1]
    timing, before = _timing(session, item), _timing(session, first)
    if timing is not None:
        ratio = before.median_ms / timing.median_ms if before and timing.median_ms else None
        return _timed(timing, _against_first(first, item, ratio))
    estimated, estimated_before = (parent_estimate(session, one, target) for one in (item, first))
    if estimated is not None:
        ratio = estimated_before.seconds / estimated.seconds if estimated_before else None
        return _estimated(estimated, _against_first(first, item, ratio))
    return "Its time is not known: it was neither timed nor estimated."


def _timing(session: Session, item: Round) -> Timing | None:
    """Timing of a round's kernel, here or on another machine."""
    elsewhere = session.measured(item)
    own = item.evaluation.timing if item.evaluation else None
    return own or (elsewhere.evaluation.timing if elsewhere else None)


def _against_first(first: Round, item: Round, ratio: float | None) -> str:
    if first is item:
        return "it is the first kernel"
    return f"{times(ratio)} as fast as {revision(first)}, the first kernel" if ratio else ""


def _timed(timing: Timing, against_first: str) -> str:
    eager = next((one for one in timing.baselines if one.name == "eager"), None)
    against_eager = (
        f"{interval(eager.speedup, eager.speedup_low, eager.speedup_high)} against PyTorch eager"
        if eager
        else ""
    )
    parts = [f"Measured {duration(timing.median_ms / 1e3)} (median)", against_first, against_eager]
    return "; ".join(filter(None, parts)) + "."


def _estimated(found: Estimate, against_first: str) -> str:
    low, high = duration(found.seconds_low), duration(found.seconds_high)
    said = f"Estimated {duration(found.seconds)} on {found.target} ({low} to {high})"
    parts = "; ".join(filter(None, [said, against_first]))
    return (
        f"{parts}. Estimates are computed from counts at full size and not measured; nothing is known "
        "against PyTorch eager."
    )


def _counts(facts: ProblemFacts, device: Device, evaluation: Evaluation) -> str:
    """Counts of one call, at full size where it was sampled there, and the resources of its kernels."""
    sample, profile = evaluation.full_size, evaluation.profile
    if sample is not None and sample.launches:
        launches: Sequence[LaunchProfile] = [one.profile for one in sample.launches]
        heading = "Counts of one call at full size"
    elif profile is not None:
        launches = profile.launches
        size = " at the smaller size that is run" if is_scaled(profile, facts) else ""
        heading = f"Counts of one call{size} ({profile.source.value})"
    else:
        return ""
    counters = sum((launch.counters for launch in launches), Counters())
    return "\n".join(
        [
            f"{heading}, {len(launches)} launch{'' if len(launches) == 1 else 'es'}:",
            f"- {counters_text(counters)}",
            *(f"- {kernel_name(one)}: grid {one.grid}, block {one.block}" for one in launches),
            *(f"- {line}" for line in resource_lines(facts, device, evaluation)),
        ]
    )
