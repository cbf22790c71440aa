"""Order in which a time is refused, and what is concluded from it: recorded traces in place of a GPU."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from cutegen_nb.core.evaluation import Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.timing import Timing
from cutegen_nb.evaluator.timing import cold_l2, plausibility
from cutegen_nb.evaluator.timing import timing as timings
from cutegen_nb.evaluator.timing.cuda_trace import KernelTrace
from cutegen_nb.evaluator.timing.plausibility import RIVAL, HardwareLimits, refused
from cutegen_nb.evaluator.timing.statistics import AGAIN, CANDIDATE
from cutegen_nb.evaluator.timing.timing import TimingRequest
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault

PLAIN = KernelTrace(
    names=("kernel_cutlass_relu_0",), span_ms=0.5, own_ms=0.5, library=(), library_ms=0.0, busy_ms=0.5
)
EMPTY = replace(PLAIN, names=(), span_ms=0.0, own_ms=0.0, busy_ms=0.0)
BY_LIBRARY = replace(PLAIN, library=("cublasLt gemm",), library_ms=2.0)
BY_HOST = replace(PLAIN, down_bytes=1 << 20, up_bytes=1 << 20)
OUTSIDE = replace(PLAIN, elsewhere=("kernel_cutlass_relu_0",), busy_ms=3.0)
LONGER = replace(PLAIN, busy_ms=3.0)
LIMITS = HardwareLimits(least_bytes=1 << 21, bandwidth=4e12, given_bytes=1 << 20, made_bytes=1 << 20)
LARGE = replace(LIMITS, least_bytes=8 << 30, given_bytes=4 << 30, made_bytes=4 << 30)
WRONG = Finding(kind="wrong-when-timed", message="wrong elements")
TIMING = Timing(median_ms=0.5, samples_ms=(0.5,), baselines=(), bandwidth_bytes_per_s=4e12)


@pytest.fixture
def device(monkeypatch):
    """A GPU with an L2 of 60 MiB, on which nothing runs beside a baseline and further calls are right."""
    monkeypatch.setattr(cold_l2, "l2_bytes", lambda: 60 << 20)
    monkeypatch.setattr(plausibility, "recheck", lambda *_: None)
    monkeypatch.setattr(plausibility, "trace_calls", lambda *_: (EMPTY, EMPTY))
    monkeypatch.setattr(plausibility.memory_contents, "change", lambda *_, **__: "new contents")
    monkeypatch.setattr(plausibility, "traced", lambda *_: ((LONGER, LONGER), None))


def bench(wrong=None):
    return SimpleNamespace(
        calls={CANDIDATE: None, "eager": lambda: None},
        pool=[[]],
        outputs=SimpleNamespace(wrong=wrong, made_bytes=1 << 20),
    )


TASK = SimpleNamespace(draw=lambda _: [])


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    ("traces", "limits", "wrong", "kind", "outcome"),
    [
        ((PLAIN, PLAIN), LIMITS, None, None, None),
        (None, LIMITS, None, None, None),
        ((PLAIN, EMPTY), LIMITS, None, "no-kernel", Judged(verdict=Verdict.CHEATED)),
        ((OUTSIDE, OUTSIDE), LIMITS, None, "outside-the-clock", Judged(verdict=Verdict.CHEATED)),
        ((BY_LIBRARY, BY_LIBRARY), LIMITS, None, "library-kernels", Judged(verdict=Verdict.NOT_OWN_WORK)),
        ((BY_HOST, BY_HOST), LIMITS, None, "host-work", Judged(verdict=Verdict.NOT_OWN_WORK)),
        ((PLAIN, PLAIN), LIMITS, WRONG, "wrong-when-timed", Judged(verdict=Verdict.WRONG_VALUES)),
        ((PLAIN, PLAIN), LARGE, WRONG, "wrong-when-timed", Judged(verdict=Verdict.WRONG_VALUES)),
        ((PLAIN, PLAIN), LARGE, None, "above-roof", NotJudged(reason=NotJudgedReason.ABOVE_ROOF)),
        ((LONGER, LONGER), LIMITS, None, "times-disagree", NotJudged(reason=NotJudgedReason.TIMES_DISAGREE)),
    ],
)
def test_each_reason_to_refuse_a_time_has_its_outcome(traces, limits, wrong, kind, outcome):
    found = refused(TASK, TIMING, traces, limits, bench(wrong))
    assert (kind, outcome) == (None, None) if found is None else (found[0].kind, found[1]) == (kind, outcome)


@pytest.mark.usefixtures("device")
def test_one_long_trace_beside_others_as_short_as_the_timed_calls_refuses_nothing(monkeypatch):
    monkeypatch.setattr(plausibility, "traced", lambda *_: ((LONGER, PLAIN), None))
    assert refused(TASK, TIMING, (LONGER, LONGER), LIMITS, bench()) is None


@pytest.mark.usefixtures("device")
def test_a_kernel_of_the_candidates_beside_a_baseline_is_cheating(monkeypatch):
    monkeypatch.setattr(plausibility, "trace_calls", lambda *_: (PLAIN, PLAIN))
    finding, outcome = refused(TASK, TIMING, (PLAIN, PLAIN), LIMITS, bench())
    assert (finding.kind, outcome) == ("beside-the-baseline", Judged(verdict=Verdict.CHEATED))


REQUEST = TimingRequest(
    baselines=("eager", "torch.compile"),
    least_bytes=1 << 21,
    flops=10**12,
    peak_flops=1e15,
    noise_fraction=None,
    longest_s=4.0,
)


def concluded(monkeypatch, traces, refusal=None, order=REQUEST):
    monkeypatch.setattr(plausibility, "refused", lambda *_: refusal)
    return timings._concluded(TASK, TIMING, traces, order, bench(), ())


def test_less_time_than_the_references_arithmetic_is_a_flag_beside_the_times(monkeypatch):
    measured = concluded(monkeypatch, (PLAIN, PLAIN))  # 10^12 operations at 10^15 a second take a millisecond
    assert [(item.kind, item.severity) for item in measured.findings] == [("fewer-operations", Severity.FLAG)]
    assert (measured.outcome, measured.timing, measured.work.own_fraction) == (None, TIMING, 1.0)


def test_a_refusal_comes_before_the_flags_and_keeps_no_times(monkeypatch):
    refusal = (WRONG, Judged(verdict=Verdict.WRONG_VALUES))
    measured = concluded(monkeypatch, (PLAIN, PLAIN), refusal)
    assert measured.findings[0] is WRONG
    assert measured.outcome == refusal[1]


def test_where_the_profiler_records_nothing_a_flag_says_so(monkeypatch):
    measured = concluded(monkeypatch, None, order=replace(REQUEST, flops=0))
    assert [item.kind for item in measured.findings] == ["no-trace"]
    assert measured.work is None


def test_equal_calls_that_launch_different_kernels_are_a_flag(monkeypatch):
    other = replace(PLAIN, names=("kernel_cutlass_other_0",))
    measured = concluded(monkeypatch, (PLAIN, other), order=replace(REQUEST, flops=0))
    assert [(item.kind, item.severity) for item in measured.findings] == [("launches-differ", Severity.FLAG)]


def test_a_quick_look_times_against_eager_alone_and_for_part_of_a_second():
    quick = timings._quick(REQUEST)
    assert (quick.baselines, quick.longest_s) == (("eager",), 0.4)


def test_the_first_baseline_is_called_twice_only_while_the_noise_is_unknown():
    outputs = SimpleNamespace(task=SimpleNamespace(candidate=str), pool=[[]])
    others = {"eager": abs, RIVAL: max}
    made = timings._bench(others, REQUEST, outputs, None)
    assert made.calls == {CANDIDATE: str, "eager": abs, RIVAL: max, AGAIN: abs}
    known = timings._bench(others, replace(REQUEST, noise_fraction=0.01), outputs, None)
    assert AGAIN not in known.calls
    alone = timings._bench({RIVAL: max}, REQUEST, outputs, None)
    assert AGAIN not in alone.calls


@pytest.mark.parametrize(
    ("rival", "message"),
    [
        (
            lambda: "It could not be built.",
            "The best revision so far was not timed beside this candidate: It could not be built.",
        ),
        (
            lambda: (
                lambda *_: (_ for _ in ()).throw(
                    CandidateFault(
                        Judged(verdict=Verdict.CRASHED), Finding(kind="exception", message="It raised.")
                    )
                )
            ),
            "The best revision so far did not run beside this candidate: It raised.",
        ),
    ],
    ids=["not built", "does not run"],
)
def test_a_best_before_that_cannot_be_timed_is_a_flag(monkeypatch, rival, message):
    monkeypatch.setattr(timings, "prepare", lambda *_: ({"eager": abs}, ()))
    task = SimpleNamespace(reference=None, rival=rival, rival_digest="d" * 64)
    calls, found = timings._calls(task, REQUEST, [[]], {})
    assert set(calls) == {"eager"}
    assert [(item.kind, item.message, item.severity) for item in found] == [
        ("no-rival", message, Severity.FLAG)
    ]
