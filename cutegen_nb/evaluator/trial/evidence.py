"""Task of a worker, and the evidence that it collects on one candidate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from cutegen_nb.analysis.binary.listing import KernelCode
from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Judged,
    Outcome,
    OutputComparison,
    Tier,
    Verdict,
    WorkShare,
)
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.timing import Timing
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.catalog import CHECKS
from cutegen_nb.evaluator.catalog.check import Check
from cutegen_nb.evaluator.catalog.memory import UNWRITTEN
from cutegen_nb.evaluator.problem.loader import LoadedProblem

Ending = tuple[Outcome, str]
"""Outcome of a candidate, and a sentence that says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A candidate that passed before."""

    source: str
    """Text of its file."""
    digest: str
    """SHA-256 of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingTask:
    """A correct candidate with everything that its timing needs."""

    candidate: Callable[..., Any]
    """``ModelNew``."""
    reference: torch.nn.Module
    """``Model``, with the same state."""
    draw: Callable[[int], list[Any]]
    """Draws inputs on the device from a seed."""
    check: Callable[[tuple[torch.Tensor, ...], list[Any]], tuple[OutputComparison, ...]]
    """Compares outputs of a timed call with the reference on the same inputs; empty where forms differ."""
    gates: tuple[Tolerance, ...]
    """Tolerance of each output."""
    kept: Callable[[], tuple[torch.Tensor, ...]]
    """Gives the candidate's parameters and buffers, which it may return as they are."""
    seed: int
    """Seed for inputs, not among the seeds of the correctness runs."""
    compile_s: float
    """Seconds of the first call."""
    stage: Progress
    """Told the step that begins."""
    rival: Callable[[], Callable[..., Any] | str]
    """Makes the candidate to beat, to be timed in the same turns. A string is the reason why there is none,
    empty where none was asked for."""
    rival_digest: str = ""
    """SHA-256 of the rival's file; empty where there is no rival."""
    library: Library = ()
    """Parts that the problem's policy leaves to PyTorch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpeed:
    """Result of timing a correct candidate and of the kernel trace of one call."""

    timing: Timing | None = None
    """Times of the candidate and its baselines."""
    findings: tuple[Finding, ...] = ()
    """Findings, the one that decides first."""
    outcome: Outcome | None = None
    """Outcome where timing decides against the candidate or makes a verdict impossible; else None."""
    work: WorkShare | None = None
    """Shares of the device time of one call; None where there is no trace."""


class Measure(Protocol):
    """Function that times a correct candidate."""

    def __call__(self, task: TimingTask, *, quick: bool = False) -> MeasuredSpeed:
        """Time a candidate; with `quick` against eager and the rival alone, for part of a second."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One evaluation as the worker gets it: problem, candidate, checks to run."""

    loaded: LoadedProblem
    """The problem at the size to run."""
    source: str
    """Text of the candidate's file."""
    digest: str
    """SHA-256 of the candidate's file, taken before any of it ran."""
    folder: Path
    """Folder for the candidate's file, made when it is needed."""
    gates: tuple[Tolerance, ...]
    """Tolerance of each output, found for this problem before; empty the first time."""
    longest_sum: int
    """Approximate number of terms of the reference's longest sum, at the size to run."""
    time_it: Measure | None
    """Times a correct candidate on a GPU; None on the simulator."""
    tier: Tier = Tier.A
    """Highest tier of checks to run."""
    added_inputs: tuple[str, ...] = ()
    """Kinds of inputs that the problem's admission added to the problem's own."""
    exact: bool = False
    """True if the problem's operations turn integers into integers, so that results can be exact."""
    rival: Rival | None = None
    """Best candidate so far, to be timed beside this one."""
    only_if_faster: bool = False
    """True if checks above tier A are skipped where a short timing finds the candidate no faster."""
    closer_s: float = 10.0
    """Seconds that checks above tier A may take together; those left over are reported as not run."""


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Evidence collected so far on one candidate; becomes the Evaluation however the run ends."""

    findings: list[Finding] = field(default_factory=list)
    """Findings, the one that decides first."""
    exhibits: list[Exhibit] = field(default_factory=list)
    """Evidence behind verdicts of CHEATED and NOT_OWN_WORK."""
    results: dict[str, CheckResult] = field(default_factory=dict)
    """Result of each check so far, by the check's name."""
    seeds: list[int] = field(default_factory=list)
    """Seeds of the inputs compared so far."""
    outputs: tuple[OutputComparison, ...] = ()
    """Comparisons of the outputs for the latest inputs."""
    gates: tuple[Tolerance, ...] = ()
    """Tolerance of each output, once they are known."""
    profile: Profile | None = None
    """Profile of the first call, or of one that a fault ended, on the simulator."""
    code: tuple[KernelCode, ...] = ()
    """Code of the kernels of that call, on the simulator."""
    timing: Timing | None = None
    """Times of the candidate and its baselines, on a GPU."""
    work: WorkShare | None = None
    """Shares of work in the latest call."""
    library: Library = ()
    """Families of operators that PyTorch ran in any call, as the problem's policy allows."""
    took_part: bool = False
    """True if kernels were seen to do a part of a call in which allowed operators of PyTorch ran."""
    compile_s: float = 0.0
    """Seconds of the first call."""
    call_s: float = 0.0
    """Seconds of the latest call after the first."""
    doubts: list[Finding] = field(default_factory=list)
    """Reads of memory that nothing wrote, which may or may not change an output."""
    doubts_settled: bool = False
    """True if equal calls over different memory have been compared."""
    threads: int = 0
    """Threads of the process after the first call, when everything is compiled."""
    instructions_a_warp: float = 0.0
    """Instructions per warp of the longest launch of the first call, on the simulator; 0 on a GPU."""
    provisional: list[str] = field(default_factory=list)
    """Deciding checks that did not run because time ran out, in words."""
    lean: bool = False
    """True if calls are dear, so that each check above tier A makes fewer of them. Decided by the work of one
    call, never by a clock: a loaded machine gives the same verdict."""
    no_faster: bool = False
    """True if checks above tier A were skipped because the candidate is no faster than the best before it."""
    closer_until: float = 0.0
    """Deadline (``time.monotonic``) after which no check above tier A begins, for calls that never end."""

    def ran(self, check: Check, note: str = "") -> None:
        """Note that a check ran and found nothing."""
        self._note(check, CheckState.RAN, note)

    def passed(self, *checks: Check) -> None:
        """Note that checks ran and found nothing, except those that have a result already."""
        for check in checks:
            if check.name not in self.results:
                self.ran(check)

    def found(self, check: Check, note: str = "") -> None:
        """Note that a check found something."""
        self._note(check, CheckState.FOUND, note)

    def skipped(self, check: Check, why: str) -> None:
        """Note that a check did not run, and `why`."""
        self._note(check, CheckState.NOT_RUN, why)

    def _note(self, check: Check, state: CheckState, note: str) -> None:
        self.results[check.name] = CheckResult(name=check.name, tier=check.tier, state=state, note=note)

    def settle_doubts(self, *, differ: bool) -> Ending | None:
        """Decide UNINITIALISED_READ where there are doubts and outputs `differ`; else flag the doubts.

        `differ` is True if outputs are wrong, or differ between equal calls over different memory contents.
        """
        doubts, self.doubts, self.doubts_settled = self.doubts, [], True
        if not doubts:
            return None
        if differ:
            return self.ends(UNWRITTEN, Verdict.UNINITIALISED_READ, doubts[0])
        for item in doubts:
            message = f"{item.message} The outputs are nevertheless the same."
            self.flag(UNWRITTEN, replace(item, message=message, severity=Severity.FLAG))
        return None

    def flag(self, check: Check, finding: Finding) -> None:
        """Add a finding that a person should see and that decides nothing."""
        if finding not in self.findings:
            self.findings.append(finding)
        self.found(check, finding.message)

    def ends(self, check: Check, verdict: Verdict, finding: Finding) -> Ending:
        """Return the outcome of a check that decides, after putting its finding first."""
        self.findings.insert(0, finding)
        self.found(check, finding.message)
        return Judged(verdict=verdict), finding.message

    def cheated(self, check: Check, exhibit: Exhibit) -> Ending:
        """Return the outcome for something hidden or forged; its finding has the exhibit's first line."""
        return self._shown(check, Verdict.CHEATED, exhibit)

    def not_own_work(self, check: Check, exhibit: Exhibit) -> Ending:
        """Return the outcome where something other than the candidate's kernels openly does the work."""
        return self._shown(check, Verdict.NOT_OWN_WORK, exhibit)

    def _shown(self, check: Check, verdict: Verdict, exhibit: Exhibit) -> Ending:
        self.exhibits.insert(0, exhibit)
        line = exhibit.lines[0] if exhibit.lines else 0
        return self.ends(check, verdict, Finding(kind=exhibit.kind, message=exhibit.statement, line=line))

    def time_left(self, check: Check, *, decides: bool = True) -> bool:
        """Return whether one more call fits before the deadline; note a check that `decides` where not."""
        left = time.monotonic() + self.call_s < self.closer_until
        reason = f"{check.name}: no time was left for it"
        if not left and decides and reason not in self.provisional:
            self.provisional.append(reason)
        return left

    def check_results(self, tier: Tier, *, on_gpu: bool) -> tuple[CheckResult, ...]:
        """Results of every check of `tier` and below; checks that did not run say why."""
        return tuple(
            self.results.get(item.name) or _absent(item, on_gpu=on_gpu)
            for item in CHECKS
            if tier.includes(item.tier)
        )


def _absent(check: Check, *, on_gpu: bool) -> CheckResult:
    if check.needs_gpu and not on_gpu:
        why = f"it needs a GPU; {check.instead}" if check.instead else "it needs a GPU"
    elif check.needs_simulator and on_gpu:
        why = "it needs the simulator"
    else:
        why = "the evaluation ended before it"
    return CheckResult(name=check.name, tier=check.tier, state=CheckState.NOT_RUN, note=why)
