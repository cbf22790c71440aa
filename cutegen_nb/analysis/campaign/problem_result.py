"""Result of one problem of a campaign: the best kernel of its session and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.figures.baselines import missing_baselines
from cutegen_nb.analysis.hardware.roofline import place, sol_share
from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.history.spending import (
    gpu_seconds_spent,
    rounds_spent,
    tokens_spent,
    wall_seconds_spent,
)
from cutegen_nb.analysis.history.summary import revision, rows
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.library import library_option
from cutegen_nb.core.search.campaign import CampaignEntry, ProblemState
from cutegen_nb.core.session import Session
from cutegen_nb.core.timing import BaselineTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemResult:
    """Figures of one problem of a campaign."""

    name: str
    """Name of the problem in the campaign."""
    file: str
    """Path of the problem file."""
    state: ProblemState
    """State of the problem."""
    reason: str = ""
    """Reason for the end of its session, or for having none, in a sentence."""
    session: str = ""
    """Name of its session; empty without one."""
    workload_class: str = ""
    """Dominant kind of work; empty for a problem that was not traced."""
    verdict: str = ""
    """Verdict of the best kernel, else of the last one; empty if none was judged."""
    correct: bool = False
    """True if a kernel passed every deciding check and was approved."""
    library: str = ""
    """Parts that PyTorch computed by the library policy: ``conv,matmul``; empty for none."""
    rounds: int = 0
    """Rounds of the session."""
    revision: str = ""
    """Revision of the best kernel: ``r2``; empty without one."""
    latency_ms: float | None = None
    """Measured latency of the best kernel in ms; None without a GPU."""
    baselines: tuple[BaselineTiming, ...] = ()
    """Speedups of the best kernel over the baselines; empty without a GPU."""
    missing: tuple[str, ...] = ()
    """Names of baselines that were requested but could not be made."""
    sol_fraction: float | None = None
    """Speed-of-light share: floor ÷ measured latency; None without a GPU."""
    estimate: Estimate | None = None
    """Estimated time of the best kernel, where it was not timed and a sample at full size exists."""
    estimated_sol_fraction: float | None = None
    """Floor of the estimate's GPU ÷ estimated time; None without an estimate. It is no measurement."""
    tokens: int = 0
    """Tokens of prompts and replies."""
    dollars: float | None = None
    """Cost in US dollars; None if no price is known."""
    gpu_s: float = 0.0
    """Seconds that evaluations held a GPU."""
    seconds: float = 0.0
    """Wall time of the rounds in seconds."""

    def speedup(self, baseline: str) -> float | None:
        """Return the speedup of a correct kernel over a baseline; None without one."""
        found = (item.speedup for item in self.baselines if item.name == baseline)
        return next(found, None) if self.correct else None

    @property
    def best_s(self) -> float | None:
        """Time of a correct kernel in seconds: measured, else estimated; None without either."""
        if not self.correct:
            return None
        if self.latency_ms is not None:
            return self.latency_ms / 1e3
        return self.estimate.seconds if self.estimate else None


def result_of(
    name: str, file: str, entry: CampaignEntry | None, session: Session | None, target: EstimateTarget
) -> ProblemResult:
    """Make the row of a problem from its recorded outcome and its session, where there are any."""
    begun = ProblemState.UNFINISHED if session else ProblemState.WAITING
    empty = ProblemResult(
        name=name,
        file=file,
        state=entry.state if entry else begun,
        reason=entry.sentence if entry else "",
    )
    return empty if session is None else _with_session(empty, session, target)


def _with_session(empty: ProblemResult, session: Session, target: EstimateTarget) -> ProblemResult:
    usages = [item.usage for item in session.rounds]
    prices = [one.cost_usd for one in usages if one.cost_usd is not None]
    last = rows(session)[-1].verdict_words if session.rounds else ""
    spent = replace(
        empty,
        reason=empty.reason or ended_words(session.stopped),
        session=session.name,
        workload_class=session.facts.workload_class.value,
        verdict=last,
        rounds=rounds_spent(session),
        tokens=tokens_spent(session),
        dollars=sum(prices) if prices else None,
        gpu_s=gpu_seconds_spent(session),
        seconds=wall_seconds_spent(session),
    )
    return _with_best(spent, session, target)


def _with_best(spent: ProblemResult, session: Session, target: EstimateTarget) -> ProblemResult:
    best = session.best
    if best is None or best.evaluation is None:
        return spent
    measured = session.measured(best)
    evaluation = measured.evaluation if measured else best.evaluation
    device = measured.device if measured else session.device
    timing = evaluation.timing
    estimated = _estimate(evaluation, target)
    return replace(
        spent,
        verdict=evaluation.verdict_words,
        correct=evaluation.stands,
        library=library_option(evaluation.library),
        revision=revision(best),
        latency_ms=timing.median_ms if timing else None,
        baselines=timing.baselines if timing else (),
        missing=tuple(one for one, _ in missing_baselines(evaluation)),
        sol_fraction=place(session.facts, device, evaluation).sol_fraction,
        estimate=estimated,
        estimated_sol_fraction=sol_share(session.facts, target.device, estimated.seconds)
        if estimated
        else None,
    )


def _estimate(evaluation: Evaluation, target: EstimateTarget) -> Estimate | None:
    sample = evaluation.full_size
    if evaluation.timing or sample is None or not sample.launches:
        return None
    return estimate(sample, target)


def label(file: str) -> str:
    """Return the short name of a problem file for a table: ``19_ReLU``."""
    return Path(file).stem
