"""What a worker is asked to judge, and what it has found out so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Exhibit,
    Finding,
    Judged,
    Outcome,
    OutputComparison,
    Severity,
    Tier,
    Timing,
    Verdict,
)
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.profile import Profile
from cutegen_nb.gpu.checks.registry import CHECKS
from cutegen_nb.gpu.checks.registry.check import Check
from cutegen_nb.gpu.checks.registry.memory import UNWRITTEN
from cutegen_nb.gpu.correctness import Gate
from cutegen_nb.gpu.problem_source import LoadedProblem

Ending = tuple[Outcome, str]
"""What became of a candidate, and that in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A candidate that passed before."""

    source: str
    """Its file."""
    digest: str
    """SHA-256 of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingTask:
    """A correct candidate with everything its timing needs."""

    candidate: Callable[..., Any]
    """``ModelNew``."""
    reference: torch.nn.Module
    """``Model``, same state."""
    draw: Callable[[int], list[Any]]
    """Fresh inputs for a seed, on the device."""
    check: Callable[[tuple[torch.Tensor, ...], list[Any]], tuple[OutputComparison, ...]]
    """Compares outputs of a timed call with the reference on the same inputs."""
    gates: tuple[Gate, ...]
    """What outputs must keep to."""
    kept: Callable[[], tuple[torch.Tensor, ...]]
    """Parameters and buffers of the candidate, which it may return as they are."""
    seed: int
    """Not among the seeds of the correctness runs."""
    compile_s: float
    """What the first call took."""
    stage: Progress
    """Told what is being done now."""
    rival: Callable[[], Callable[..., Any] | str]
    """Makes the candidate to beat, to be timed in the same turns; a reason where there is none, empty when
    nobody asked for one."""
    rival_digest: str = ""
    """Its digest."""


Measure = Callable[[TimingTask], tuple[Timing | None, tuple[Finding, ...], Outcome | None]]
"""Times a correct candidate: figures, findings, and an outcome where the figures are no verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the worker is asked to judge."""

    loaded: LoadedProblem
    """The problem at the size to run."""
    source: str
    """The candidate's file."""
    digest: str
    """Its SHA-256, taken before any of it ran."""
    folder: Path
    """A folder of its own, made when it is needed."""
    gates: tuple[Gate, ...]
    """Gates found for this problem before; empty the first time."""
    longest_sum: int
    """About how many terms the reference's longest sum has, at the size to run."""
    time_it: Measure | None
    """Measures a correct candidate on a GPU; None on the simulator."""
    tier: Tier = Tier.A
    """How closely to look."""
    added_inputs: tuple[str, ...] = ()
    """Kinds of inputs that the problem's admission added to its own."""
    exact: bool = False
    """Whether the problem's operations turn integers into integers, so that results can be exact."""
    rival: Rival | None = None
    """The best candidate so far, to be timed beside this one."""
    closer_s: float = 10.0
    """Seconds that the checks above tier A may take together; those left over are reported as not run."""


@dataclass(slots=True, kw_only=True)
class Evidence:
    """What is known so far; becomes the Evaluation however the run ends."""

    findings: list[Finding] = field(default_factory=list)
    """What decides comes first."""
    exhibits: list[Exhibit] = field(default_factory=list)
    """What accusations rest on."""
    results: dict[str, CheckResult] = field(default_factory=dict)
    """What became of each check so far, by its name."""
    seeds: list[int] = field(default_factory=list)
    """Of the inputs compared so far."""
    outputs: tuple[OutputComparison, ...] = ()
    """Of the latest inputs."""
    gates: tuple[Gate, ...] = ()
    """One for each output, once they are known."""
    profile: Profile | None = None
    """Of the first call, on the simulator."""
    timing: Timing | None = None
    """On a GPU."""
    compile_s: float = 0.0
    """What the first call took."""
    call_s: float = 0.0
    """What the latest call took."""
    doubts: list[Finding] = field(default_factory=list)
    """Reads of memory that nobody wrote: they change what a launch leaves, and perhaps an output."""
    doubts_settled: bool = False
    """Whether equal calls over different memory have been compared."""
    threads: int = 0
    """Of the process after the first call, when everything is compiled."""
    closer_until: float = 0.0
    """Reading of ``time.monotonic`` at which no further check above tier A begins."""

    def ran(self, check: Check, note: str = "") -> None:
        """The check ran and found nothing."""
        self._note(check, CheckState.RAN, note)

    def passed(self, *checks: Check) -> None:
        """They ran and found nothing, where nothing else is known of them yet."""
        for check in checks:
            if check.name not in self.results:
                self.ran(check)

    def found(self, check: Check, note: str = "") -> None:
        """The check found something."""
        self._note(check, CheckState.FOUND, note)

    def skipped(self, check: Check, why: str) -> None:
        """The check did not run."""
        self._note(check, CheckState.NOT_RUN, why)

    def _note(self, check: Check, state: CheckState, note: str) -> None:
        self.results[check.name] = CheckResult(name=check.name, tier=check.tier, state=state, note=note)

    def settle_doubts(self, *, differ: bool) -> Ending | None:
        """Do outputs depend on memory that nobody wrote and a kernel read? The outcome where they do."""
        doubts, self.doubts, self.doubts_settled = self.doubts, [], True
        if not doubts:
            return None
        if differ:
            return self.ends(UNWRITTEN, Verdict.UNINITIALISED_READ, doubts[0])
        for item in doubts:
            message = f"{item.message} The outputs are the same all the same."
            self.flag(UNWRITTEN, replace(item, message=message, severity=Severity.FLAG))
        return None

    def flag(self, check: Check, finding: Finding) -> None:
        """Something a person should see; it decides nothing."""
        if finding not in self.findings:
            self.findings.append(finding)
        self.found(check, finding.message)

    def ends(self, check: Check, verdict: Verdict, finding: Finding) -> Ending:
        """The outcome of a check that decides, its finding put first."""
        self.findings.insert(0, finding)
        self.found(check, finding.message)
        return Judged(verdict=verdict), finding.message

    def cheated(self, check: Check, exhibit: Exhibit) -> Ending:
        """The outcome for a clear cheat; its finding points at the exhibit's lines."""
        self.exhibits.insert(0, exhibit)
        line = exhibit.lines[0] if exhibit.lines else 0
        return self.ends(
            check,
            Verdict.CHEATED,
            Finding(kind=exhibit.kind, message=exhibit.statement, severity=Severity.DECIDES, line=line),
        )

    def time_left(self, calls: float = 1.0, *, grace_s: float = 0.0) -> bool:
        """Whether a check of so many calls fits into what is left for those above tier A.

        `grace_s` is what the checks that show most may take beyond it.
        """
        return time.monotonic() + calls * self.call_s < self.closer_until + grace_s

    def check_results(self, tier: Tier, *, on_gpu: bool) -> tuple[CheckResult, ...]:
        """Every check of `tier` and below: those that never came about say why."""
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
