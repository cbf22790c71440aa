"""Evaluations of candidates: verdict, findings, correctness, timing and the checks that ran."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cutegen_nb.core.compiled.listing import CodeListing
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.finding import ACCUSING, Exhibit, Finding, Severity
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.core.library import Library, library_words
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.timing import Timing
from cutegen_nb.core.wrong_values import WrongValues


class Verdict(StrEnum):
    """Verdict on a candidate that could be judged."""

    PASSED = "PASSED"
    """Every check of the tier that ran holds."""
    SCREENED_OUT = "SCREENED_OUT"
    """Static screening of the source found a decisive fault; nothing was run."""
    COMPILE_FAILED = "COMPILE_FAILED"
    """The DSL did not compile the candidate, or the file did not import."""
    CRASHED = "CRASHED"
    """The candidate raised, or a signal ended its process."""
    EXITED = "EXITED"
    """The candidate called ``exit``, or its process ended without a result."""
    TIMED_OUT = "TIMED_OUT"
    """The candidate did not finish before its deadline."""
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    """Memory of the device or of the process ran out."""
    WRONG_SHAPE = "WRONG_SHAPE"
    """Number or shape of the outputs differ from the reference's."""
    WRONG_DTYPE = "WRONG_DTYPE"
    """Type, dtype, memory layout or device of an output differs from the reference's."""
    WRONG_VALUES = "WRONG_VALUES"
    """An output differs from the oracle by more than the tolerance."""
    INPUT_MODIFIED = "INPUT_MODIFIED"
    """The candidate changed an input that the reference leaves unchanged."""
    NONDETERMINISTIC = "NONDETERMINISTIC"
    """Two calls with equal inputs differ by more than rounding."""
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    """A memory access outside every tensor or allocation."""
    MISALIGNED = "MISALIGNED"
    """A memory access at an address that its width does not divide."""
    UNINITIALISED_READ = "UNINITIALISED_READ"
    """A read of memory that nothing has written."""
    RACE = "RACE"
    """Accesses to one location, at least one a write, without an order between them."""
    DEADLOCK = "DEADLOCK"
    """A barrier or a wait that can never complete."""
    ASYNC_HAZARD = "ASYNC_HAZARD"
    """A use of memory while an asynchronous copy to it is under way."""
    NOT_OWN_WORK = "NOT_OWN_WORK"
    """PyTorch, a library or the host computes the problem in plain sight; not an accusation."""
    CHEATED = "CHEATED"
    """Something hidden or forged: a kept answer, a replaced harness, work outside the watched call."""


class NotJudgedReason(StrEnum):
    """Reasons for having no verdict; none is evidence against the candidate."""

    UNSUPPORTED_OPCODE = "UNSUPPORTED_OPCODE"
    """The simulator cannot run an instruction or an operation of the candidate."""
    EMPTY_TRACE = "EMPTY_TRACE"
    """The profiler's trace of one call shows no kernel of the candidate's own."""
    ABOVE_ROOF = "ABOVE_ROOF"
    """The measured time is shorter than the hardware allows."""
    TIMES_DISAGREE = "TIMES_DISAGREE"
    """The profiler's times are longer than the times from CUDA events."""
    REPLY_UNUSABLE = "REPLY_UNUSABLE"
    """The author's reply holds no usable source file."""
    DECLINED = "DECLINED"
    """The author cannot write a kernel for this problem."""


EAGER = "eager"
"""Name of the baseline that runs the reference in eager mode."""
COMPILED = "torch.compile"
"""Name of the baseline that runs the reference under ``torch.compile``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Outcome with a verdict."""

    verdict: Verdict
    """The verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """Outcome without a verdict: nothing can be said of the candidate."""

    reason: NotJudgedReason
    """Reason for having no verdict."""


Outcome = Judged | NotJudged


class Tier(StrEnum):
    """Depth of an evaluation. Each tier includes the ones before it."""

    A = "A"
    """Checks of every round."""
    B = "B"
    """Checks before a revision may become the best."""
    C = "C"
    """Checks before an export, and on demand."""

    def includes(self, other: Tier) -> bool:
        """Return whether the checks of `other` run at this tier."""
        return other.value <= self.value


class CheckState(StrEnum):
    """State of one check after an evaluation."""

    RAN = "ran"
    """The check ran and found nothing."""
    FOUND = "found"
    """The check ran and found something; the findings say what."""
    NOT_RUN = "not run"
    """The check did not run; the note says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Result of one check of one evaluation."""

    name: str
    """Name of the check, as ``cutegen-nb checks`` lists it."""
    tier: Tier
    """Tier of the check."""
    state: CheckState
    """State of the check."""
    note: str = ""
    """Reason for not running, or the subject that was checked; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputComparison:
    """Comparison of one output with the reference."""

    index: int
    """Position of the output, from 0."""
    shape: tuple[int, ...]
    """Shape of candidate's and reference's output."""
    dtype: str
    """dtype of candidate's and reference's output."""
    matches: bool
    """True if both tolerances hold: that of each element and that of the relative L2 error."""
    max_abs_error: float
    """Largest absolute difference from the fp64 oracle."""
    relative_l2_error: float
    """‖candidate − oracle‖₂ ÷ ‖oracle‖₂."""
    reference_relative_l2_error: float
    """Relative L2 error of the reference itself: the error of a faithful implementation in its precision."""
    tolerance_abs: float
    """Element tolerance: its absolute part."""
    tolerance_rel: float
    """Element tolerance: its part relative to the oracle's element."""
    tolerance_l2: float
    """Tolerance of the relative L2 error."""
    bad_fraction: float
    """Share of elements outside the element tolerance."""
    first_bad: tuple[int, ...] | None = None
    """Index of the first element outside the element tolerance."""
    first_bad_values: tuple[float, float] | None = None
    """Candidate's and oracle's value at that index."""
    pattern: str = ""
    """Common pattern of the wrong elements, in a sentence; empty when the output matches."""
    wrong: WrongValues | None = None
    """Wrong elements with their figures; None when the output matches, and in evaluations older than this
    field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """Comparison of all outputs with the reference."""

    seeds: tuple[int, ...]
    """Seeds of the inputs, drawn after the candidate was frozen."""
    outputs: tuple[OutputComparison, ...]
    """One comparison for each output, of the first seed that failed or else of the last seed."""
    checks: tuple[str, ...]
    """Names of the checks that ran."""
    checks_not_run: tuple[str, ...] = ()
    """Names of the checks that did not run, each with its reason."""


GLUE_FRACTION = 1 / 16
"""Share of work by PyTorch, libraries and host below which it counts as glue and is not reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkShare:
    """Shares of the work of one call by candidate, libraries and host; they add up to 1.

    On a GPU, shares of the device's time in the trace. On the simulator, shares of the bytes read and
    written.
    """

    own_fraction: float
    """Share of the candidate's own kernels."""
    library_fraction: float
    """Share of PyTorch's operations and library kernels, copies and casts included."""
    host_fraction: float
    """Share that the host reads, or that is copied between host and device."""

    @property
    def sentence(self) -> str:
        """The shares in words; empty below `GLUE_FRACTION` of work by others."""
        if self.library_fraction + self.host_fraction < GLUE_FRACTION:
            return ""
        host = f", the host for {self.host_fraction:.0%}" if self.host_fraction else ""
        return (
            f"Whose work it is: the candidate's kernels stand for {self.own_fraction:.0%}, PyTorch and "
            f"libraries for {self.library_fraction:.0%}{host}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Result of one evaluation of one candidate."""

    outcome: Outcome
    """The verdict, or the reason for having none."""
    summary: str
    """One sentence: what happened, the value seen, the next step."""
    device: str
    """Name of the device."""
    findings: tuple[Finding, ...] = ()
    """Facts that decide the verdict, and flags."""
    correctness: Correctness | None = None
    """Comparison with the reference; None when no output was compared."""
    profile: Profile | None = None
    """Counts of one call; None when none were taken."""
    timing: Timing | None = None
    """Latency; None without a GPU."""
    log: str = ""
    """Tail of the candidate's printed output, bounded in length."""
    duration_s: float = 0.0
    """Wall time of the evaluation itself, not of the kernel."""
    confinement: str = ""
    """Confinement of the candidate by the operating system, in one line; empty when no worker ran."""

    tier: Tier = Tier.A
    """Depth of the checks."""
    checks: tuple[CheckResult, ...] = ()
    """Every check of that tier, with its state and the reason where it did not run."""
    exhibits: tuple[Exhibit, ...] = ()
    """Evidence for the verdict; never empty for CHEATED and NOT_OWN_WORK."""
    candidate_digest: str = ""
    """SHA-256 of the candidate's source, taken before any of it ran."""
    problem_digest: str = ""
    """SHA-256 of the problem's source."""
    recorded: str = ""
    """Place and time of the recording that a replay shows again; empty for a new evaluation."""
    layouts: tuple[LayoutRecord, ...] = ()
    """Layouts of the compiled kernels, where they could be read."""
    provisional: tuple[str, ...] = ()
    """Deciding checks that did not run, with the reason; empty for a full verdict."""
    stage_seconds: tuple[tuple[str, float], ...] = ()
    """Seconds of each stage, in order."""
    work: WorkShare | None = None
    """Shares of the work of a call, where they could be measured."""
    library: Library = ()
    """Parts that PyTorch computed as the problem's policy allows; empty where kernels did everything."""
    code: tuple[CodeListing, ...] = ()
    """PTX and SASS of the kernels, where they could be read."""
    full_size: FullSizeSample | None = None
    """Counts of a call at the problem's full size, for a pass on the simulator; they decide no verdict."""

    def __post_init__(self) -> None:
        """Raise ValueError for an accusation without evidence, and for a pass that a finding contradicts."""
        verdict = self.outcome.verdict if isinstance(self.outcome, Judged) else None
        if verdict in {Verdict.CHEATED, Verdict.NOT_OWN_WORK} and not self.exhibits:
            raise ValueError(f"{verdict} needs its evidence: exhibits is empty")
        if verdict is Verdict.PASSED:
            for item in self.findings:
                if item.severity is Severity.DECIDES:
                    raise ValueError(f"PASSED contradicts the deciding finding {item.kind}: {item.message}")

    @staticmethod
    def upgraded(written: dict[str, Any]) -> dict[str, Any]:
        """Return encoded data of an older version with the fields that are required today.

        The first version stored no exhibits: its accusations rested on their summary.
        """
        outcome = written.get("outcome")
        verdict = outcome.get("verdict") if isinstance(outcome, dict) else None
        accuses = verdict in {Verdict.CHEATED, Verdict.NOT_OWN_WORK}
        if not accuses or written.get("exhibits"):
            return written
        evidence = {"kind": "recorded-by-an-older-version", "statement": written.get("summary", "")}
        return {**written, "exhibits": [evidence]}

    @property
    def passed(self) -> bool:
        """True if the verdict is PASSED."""
        return isinstance(self.outcome, Judged) and self.outcome.verdict is Verdict.PASSED

    @property
    def verdict_words(self) -> str:
        """The label, with the parts that PyTorch computed: ``PASSED with PyTorch's conv``."""
        return f"{self.label} {library_words(self.library)}".rstrip()

    @property
    def stands(self) -> bool:
        """True if the candidate passed and every deciding check ran; a provisional pass does not stand."""
        return self.passed and not self.provisional

    @property
    def shortfall(self) -> str:
        """Reason why nothing may be built on the candidate: a clause to follow "cannot be approved: "."""
        if self.passed:
            reasons = "; ".join(self.provisional)
            return f"its pass is provisional ({reasons}), and only a full pass can be built upon"
        found = "it was" if isinstance(self.outcome, NotJudged) else "its verdict is"
        return f"{found} {self.label}, and only a kernel that passed can be built upon"

    @property
    def accusing(self) -> tuple[Finding, ...]:
        """Findings of the kinds in `ACCUSING`."""
        return tuple(item for item in self.findings if item.kind in ACCUSING)

    @property
    def label(self) -> str:
        """The verdict's name, or ``not judged: REASON``."""
        if isinstance(self.outcome, Judged):
            return self.outcome.verdict.value
        return f"not judged: {self.outcome.reason.value}"

    @property
    def why_not_overruled(self) -> str:
        """Reason why the verdict may not be overruled: a clause to follow "cannot be overruled: "."""
        if self.stands:
            return "it passed; approve or reject it"
        if isinstance(self.outcome, NotJudged):
            return f"it was {self.label}, so there is no verdict; reject it, edit it or stop"
        return f"{self.label} is an observed fact, not an inference; reject it, edit it or stop"

    @property
    def may_be_overruled(self) -> bool:
        """True if a person who has seen the evidence may build on the candidate despite its verdict.

        CHEATED, NOT_OWN_WORK and an implausible time are inferences. So are wrong values on inputs that the
        problem itself never draws. A crash, or a wrong output on the problem's own inputs, is a fact. A pass
        with a deciding check that did not run is provisional, and may be overruled too.
        """
        if self.passed:
            return bool(self.provisional)
        if isinstance(self.outcome, NotJudged):
            return self.outcome.reason in {
                NotJudgedReason.ABOVE_ROOF,
                NotJudgedReason.EMPTY_TRACE,
                NotJudgedReason.TIMES_DISAGREE,
            }
        if self.outcome.verdict in {Verdict.CHEATED, Verdict.NOT_OWN_WORK}:
            return True
        # Tier A draws the problem's own inputs; a check above it that found something used other inputs.
        return self.outcome.verdict is Verdict.WRONG_VALUES and any(
            item.tier is not Tier.A and item.state is CheckState.FOUND for item in self.checks
        )
