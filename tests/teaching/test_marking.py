from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Correctness, Evaluation, Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.core.strategy import Optimisation
from cutegen_nb.teaching.exercise import ESTIMATED, Exercise, Target, find_exercise
from cutegen_nb.teaching.marking import marked

SOURCE = "first\nsecond\nthird"


def passed(exercise: str, *, grid: int = 1, findings: tuple[Finding, ...] = (), **counts: int) -> Evaluation:
    launch = LaunchProfile(
        kernel="k", grid=(grid, 1, 1), block=(128, 1, 1), dynamic_smem_bytes=0, static_smem_bytes=4096,
        counters=Counters(**counts),
    )  # fmt: skip
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="Right.",
        device="simulator",
        findings=findings,
        correctness=Correctness(seeds=(1, 2, 3), outputs=(), checks=()),
        profile=Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch,)),
    )


def failed(summary: str, *findings: Finding, verdict: Verdict = Verdict.COMPILE_FAILED) -> Evaluation:
    return Evaluation(outcome=Judged(verdict=verdict), summary=summary, device="simulator", findings=findings)


def test_targets_count_one_after_the_other():
    exercise = find_exercise("threads/2")
    wide = marked(exercise, SOURCE, passed("threads/2", grid=79, gmem_load_sectors=2500))
    assert (wide.points, wide.of, wide.solved) == (1, 3, False)
    assert [line.sign for line in wide.lines] == ["✓", "✗", "–"]
    double = marked(exercise, SOURCE, passed("threads/2", grid=4, gmem_load_sectors=5000))
    assert [line.sign for line in double.lines] == ["✓", "✓", "✗"]
    assert "at most 2,500 sectors: 5,000. 10,000 numbers" in repr(double)
    right = marked(exercise, SOURCE, passed("threads/2", grid=4, gmem_load_sectors=2500))
    assert right.solved
    assert repr(right).startswith("threads/2 · more elements than threads: solved, 3 of 3 points")


def test_a_message_speaks_of_the_cell():
    found = Finding(kind="out-of-bounds", message="", line=2)
    said = "Thread (1, 0, 0): writes past the end of tensor 'allocated in line 9' (st, from candidate.py:2)."
    mark = marked(find_exercise("threads/3"), SOURCE, failed(said, found, verdict=Verdict.OUT_OF_BOUNDS))
    assert (
        mark.lines[0].text == "OUT_OF_BOUNDS: Thread (1, 0, 0): writes past the end of out (st, from line 2)."
    )
    assert mark.lines[0].line == "line 2: second"
    assert mark.points == 0


def test_a_compilers_message_is_cut_to_its_first_line():
    said = "The DSL did not compile it: DSLUserCodeError: error: NameError in `launch`: name 'z' is not defined\n  |"
    mark = marked(
        find_exercise("threads/3"), SOURCE, failed(said, Finding(kind="compile-error", message=said, line=40))
    )
    assert mark.lines[0].text == "COMPILE_FAILED: NameError in `launch`: name 'z' is not defined"
    assert mark.lines[0].line == "", "line 40 is not the student's"


def test_a_launch_that_no_gpu_accepts_is_told_by_its_limit():
    flag = Finding(
        kind="launch-refused",
        severity=Severity.FLAG,
        message="Kernel kernel_cutlass_scale_tensorptrf32_0: 2048 threads in a CTA; a GPU allows 1024. Use fewer.",
    )
    mark = marked(
        find_exercise("threads/3"), SOURCE, failed("The DSL did not compile it: error code 9", flag)
    )
    assert (
        mark.lines[0].text
        == "COMPILE_FAILED: Kernel scale: 2048 threads in a CTA; a GPU allows 1024. Use fewer."
    )


def test_a_barrier_that_some_threads_skip_is_right_by_luck_only():
    flag = Finding(kind="divergent-barrier", severity=Severity.FLAG, message="64 of 128 pass", line=3)
    mark = marked(find_exercise("threads/3"), SOURCE, passed("threads/3", findings=(flag,)))
    assert (mark.points, mark.lines[0].text, mark.lines[0].line) == (
        0,
        "Right by luck: 64 of 128 pass",
        "line 3: third",
    )


def test_an_answer_that_could_not_be_judged_has_no_points_and_says_why():
    found = Evaluation(
        outcome=NotJudged(reason=NotJudgedReason.UNSUPPORTED_OPCODE),
        summary="wgmma is not simulated.",
        device="",
    )
    mark = marked(find_exercise("threads/3"), SOURCE, found)
    assert repr(mark).splitlines()[1] == "  ✗ not judged: UNSUPPORTED_OPCODE: wgmma is not simulated."


def with_target(**target: object) -> Exercise:
    made = Target(points=3, hint="Hint.", **target)
    return replace(find_exercise("threads/3"), targets=(made,), forbidden=("tensor-cores",))


def test_a_strategy_earns_its_points_where_the_kernel_carries_it_out():
    exercise = with_target(strategy="vectors-128")
    found = marked(exercise, SOURCE, passed("x"), {Optimisation.VECTORS: "100 % of the bytes"})
    assert (found.points, found.lines[1].text) == (6, "the strategy vectors-128: 100 % of the bytes")
    without = marked(exercise, SOURCE, passed("x"), {Optimisation.COALESCED: "all"})
    assert without.points == 3
    assert without.lines[1].text == "the strategy vectors-128: the kernel does not carry it out. Hint."


def test_a_strategy_that_is_not_allowed_leaves_no_points():
    found = marked(
        with_target(strategy="coalesced"), SOURCE, passed("x"), {Optimisation.TENSOR_CORES: "on mma"}
    )
    assert (found.points, found.of) == (0, 6)
    assert found.lines[0].text == "right, but tensor-cores is not allowed here: on mma"


def test_a_target_in_time_is_judged_by_the_estimate():
    exercise = with_target(count=ESTIMATED, gpu="H200", at_most=10)
    launch = passed("x", grid=1024, gmem_load_sectors=1 << 20, gmem_load_bytes=1 << 25).profile.launches[0]
    sample = FullSizeSample(launches=(LaunchSample(profile=launch, ctas=1),))
    slow = marked(exercise, SOURCE, replace(passed("x"), full_size=sample))
    assert slow.points == 3
    assert "at most 10 estimated nanoseconds on H200: " in slow.lines[1].text
    assert slow.lines[1].text.endswith("an estimate. Hint.")
    generous = with_target(count=ESTIMATED, gpu="H200", at_most=10**9)
    assert marked(generous, SOURCE, replace(passed("x"), full_size=sample)).points == 6
    missing = replace(passed("x"), full_size=FullSizeSample(missing="too large"))
    assert marked(generous, SOURCE, missing).lines[1].text.endswith("no time can be estimated, too large")
