"""What became of a candidate: a verdict with its evidence, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.wrong_values import WrongValues


class Verdict(StrEnum):
    """What a judged candidate turned out to be."""

    PASSED = "PASSED"
    SCREENED_OUT = "SCREENED_OUT"
    COMPILE_FAILED = "COMPILE_FAILED"
    CRASHED = "CRASHED"
    EXITED = "EXITED"
    TIMED_OUT = "TIMED_OUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    WRONG_SHAPE = "WRONG_SHAPE"
    WRONG_DTYPE = "WRONG_DTYPE"
    WRONG_VALUES = "WRONG_VALUES"
    INPUT_MODIFIED = "INPUT_MODIFIED"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    MISALIGNED = "MISALIGNED"
    UNINITIALISED_READ = "UNINITIALISED_READ"
    RACE = "RACE"
    DEADLOCK = "DEADLOCK"
    ASYNC_HAZARD = "ASYNC_HAZARD"
    CHEATED = "CHEATED"


class NotJudgedReason(StrEnum):
    """Why there is no verdict. Never the candidate's guilt."""

    UNSUPPORTED_OPCODE = "UNSUPPORTED_OPCODE"
    EMPTY_TRACE = "EMPTY_TRACE"
    ABOVE_ROOF = "ABOVE_ROOF"
    TIMES_DISAGREE = "TIMES_DISAGREE"
    REPLY_UNUSABLE = "REPLY_UNUSABLE"
    DECLINED = "DECLINED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The candidate has a verdict."""

    verdict: Verdict
    """What it turned out to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """Nothing can be said of the candidate."""

    reason: NotJudgedReason
    """Why."""


Outcome = Judged | NotJudged


class Severity(StrEnum):
    """Whether a finding decides or only informs."""

    DECIDES = "decides"
    FLAG = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact a person can check, with the place it comes from."""

    kind: str
    """Short name: ``out-of-bounds``, ``torch-compute``, ``wrong-values`` …"""
    message: str
    """One or two sentences with the values seen."""
    severity: Severity = Severity.DECIDES
    """Whether it decides the verdict."""
    file: str = ""
    """Path of the source that the line is of, as the compiler saw it; empty where there is none."""
    line: int = 0
    """Line of the candidate's source, from 1; 0 where there is none."""
    column: int = 0
    """Column, from 1; 0 where there is none."""
    thread: tuple[int, int, int] | None = None
    """threadIdx of the first thread it happened to."""
    cta: tuple[int, int, int] | None = None
    """blockIdx of that thread."""


class Tier(StrEnum):
    """How closely a candidate is looked at. Each tier includes the ones before it."""

    A = "A"
    """Every round."""
    B = "B"
    """Before a revision may become the best."""
    C = "C"
    """Before an export, and on demand."""

    def includes(self, other: Tier) -> bool:
        """Whether the checks of `other` run at this tier."""
        return other.value <= self.value


class CheckState(StrEnum):
    """What became of one check."""

    RAN = "ran"
    """It ran and found nothing."""
    FOUND = "found"
    """It ran and found something; the findings say what."""
    NOT_RUN = "not run"
    """It did not; the note says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check of one evaluation."""

    name: str
    """As ``cutegen-nb checks`` lists it."""
    tier: Tier
    """The tier it belongs to."""
    state: CheckState
    """What became of it."""
    note: str = ""
    """Why it did not run, or what it looked at; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """What an accusation rests on, so that a person can judge it: nothing here is an opinion."""

    kind: str
    """The finding it belongs to."""
    statement: str
    """What was seen, in a sentence or two."""
    inputs: tuple[str, ...] = ()
    """Excerpts of the inputs it was seen with."""
    outputs: tuple[str, ...] = ()
    """Excerpts of what the candidate gave."""
    expected: tuple[str, ...] = ()
    """Excerpts of what the reference gives for the same inputs."""
    trace: tuple[str, ...] = ()
    """What ran, in order: launches, operations of PyTorch, replaced functions."""
    addresses: tuple[str, ...] = ()
    """Memory it is about, by name, address and size."""
    lines: tuple[int, int] | None = None
    """First and last line of the candidate's source it points at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputComparison:
    """One output against the reference."""

    index: int
    """Which output."""
    shape: tuple[int, ...]
    """Shape of both."""
    dtype: str
    """dtype of both."""
    matches: bool
    """Whether both gates hold."""
    max_abs_error: float
    """Largest absolute difference from the fp64 oracle."""
    relative_l2_error: float
    """‖candidate − oracle‖₂ ÷ ‖oracle‖₂."""
    reference_relative_l2_error: float
    """The same for the reference itself: what a faithful implementation in its precision does."""
    tolerance_abs: float
    """Element gate, absolute part."""
    tolerance_rel: float
    """Element gate, part relative to the oracle's element."""
    tolerance_l2: float
    """Gate on the relative L2 error."""
    bad_fraction: float
    """Share of elements outside the element gate."""
    first_bad: tuple[int, ...] | None = None
    """Index of the first of them."""
    first_bad_values: tuple[float, float] | None = None
    """Candidate's and oracle's value there."""
    pattern: str = ""
    """What the wrong elements have in common, in a sentence; empty when they match."""
    wrong: WrongValues | None = None
    """The same with its figures; None when they match, and in evaluations made before it was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """The comparison with the reference."""

    seeds: tuple[int, ...]
    """Seeds of the inputs, drawn after the candidate was frozen."""
    outputs: tuple[OutputComparison, ...]
    """One for each output of the first seed that failed, or of the last seed."""
    checks: tuple[str, ...]
    """Names of the checks that ran."""
    checks_not_run: tuple[str, ...] = ()
    """Names of the checks that did not, each with its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTiming:
    """Candidate against one baseline, paired and interleaved."""

    name: str
    """``eager``, ``torch.compile`` …"""
    median_ms: float
    """Median latency of the baseline."""
    speedup: float
    """Median over pairs of baseline ÷ candidate."""
    speedup_low: float
    """Lower end of its 95 % bootstrap interval."""
    speedup_high: float
    """Upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """State of a GPU at one moment."""

    sm_mhz: int
    """Clock of the streaming multiprocessors."""
    memory_mhz: int
    """Clock of the memory."""
    temperature_c: int
    """Of the chip."""
    power_w: float
    """Drawn by the board."""
    slowed_by: tuple[str, ...] = ()
    """What held the clocks down: ``power cap``, ``hardware thermal limit`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Measured on a real GPU; never from the simulator."""

    median_ms: float
    """Median latency of the candidate, L2 flushed before each call."""
    samples_ms: tuple[float, ...]
    """Every sample, in order."""
    baselines: tuple[BaselineTiming, ...]
    """Paired comparisons."""
    bandwidth_bytes_per_s: float
    """Copy bandwidth (read + write) measured in the same process."""
    compile_s: float = 0.0
    """First call, compilation included."""
    method: str = "events"
    """How: ``events``, one pair a call; ``graph``, replays of a CUDA graph, for kernels under 10 µs."""
    warm_ms: float | None = None
    """Median latency with the L2 as the call before left it; the others are with a cold one."""
    host_ms: float | None = None
    """Median time in which the host queues a call; part of no latency here."""
    noise_fraction: float | None = None
    """How far the ratio of a baseline to itself strays from 1: a smaller difference is none."""
    resolution_fraction: float = 0.0
    """What two steps of the clock are of the median: a smaller difference is none either."""
    clocks: tuple[Clocks, ...] = ()
    """When sampling began and when it ended; empty where they could not be read."""
    rival: BaselineTiming | None = None
    """The best candidate before this one, timed in the same turns; None where there was none to time."""
    rival_digest: str = ""
    """SHA-256 of that one's source."""
    not_by_graph: str = ""
    """Why a kernel short enough for a graph was timed by events all the same; empty for any other."""
    host_included: bool = False
    """Whether the call waits for the device itself, so that the host's time is part of its latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Everything one evaluation found out."""

    outcome: Outcome
    """Verdict, or why there is none."""
    summary: str
    """One sentence: what happened, the value seen, the next step."""
    device: str
    """Name of what it ran on."""
    findings: tuple[Finding, ...] = ()
    """Evidence and flags."""
    correctness: Correctness | None = None
    """Absent when no output was compared."""
    profile: Profile | None = None
    """Counts of one call; absent when none was made."""
    timing: Timing | None = None
    """Absent without a GPU."""
    log: str = ""
    """Tail of what the candidate printed, bounded."""
    duration_s: float = 0.0
    """Wall time of the evaluation itself, not of the kernel."""
    confinement: str = ""
    """What the operating system kept the candidate from, in one line; empty when no worker ran."""

    tier: Tier = Tier.A
    """How closely it was looked at."""
    checks: tuple[CheckResult, ...] = ()
    """Every check of that tier: what ran, what did not and why."""
    exhibits: tuple[Exhibit, ...] = ()
    """What an accusation rests on; never empty for CHEATED."""
    candidate_digest: str = ""
    """SHA-256 of the candidate's source, taken before any of it ran."""
    problem_digest: str = ""
    """SHA-256 of the problem's source."""
    recorded: str = ""
    """Where and when it was made, for one that a replay shows again; empty for one just made."""
    layouts: tuple[LayoutRecord, ...] = ()
    """Layouts that the candidate's kernels were compiled with, where they could be read."""

    @property
    def passed(self) -> bool:
        """Whether the verdict is PASSED."""
        return isinstance(self.outcome, Judged) and self.outcome.verdict is Verdict.PASSED

    @property
    def label(self) -> str:
        """The verdict's name, or ``not judged: REASON``."""
        if isinstance(self.outcome, Judged):
            return self.outcome.verdict.value
        return f"not judged: {self.outcome.reason.value}"

    @property
    def may_be_overruled(self) -> bool:
        """Whether a person who has seen the evidence may build on it all the same.

        An accusation and a time above the roof are inferences, and so are wrong values on inputs that
        the problem itself never draws; a crash or a wrong output on its own inputs is not.
        """
        if isinstance(self.outcome, NotJudged):
            return self.outcome.reason in {
                NotJudgedReason.ABOVE_ROOF,
                NotJudgedReason.EMPTY_TRACE,
                NotJudgedReason.TIMES_DISAGREE,
            }
        if self.outcome.verdict is Verdict.CHEATED:
            return True
        return self.outcome.verdict is Verdict.WRONG_VALUES and any(
            item.tier is not Tier.A and item.state is CheckState.FOUND for item in self.checks
        )
