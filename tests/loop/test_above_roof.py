"""A time that the device cannot reach is never built upon, whoever let the candidate pass."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation, NotJudged, NotJudgedReason
from cutegen_nb.core.round import Action
from cutegen_nb.core.timing import Timing
from cutegen_nb.report.roofline.marks import marks
from cutegen_nb.report.roofline.plot import describe
from cutegen_nb.testing.examples import passed, simulated_device

GPU = replace(simulated_device(), kind=DeviceKind.GPU, l2_bytes=0)
FLOOR_MS = 8 * (1 << 20) / GPU.bandwidth_bytes_per_s * 1e3


def timed(multiple: float) -> Evaluation:
    """Passed, in so many times the floor."""
    timing = Timing(
        median_ms=multiple * FLOOR_MS,
        samples_ms=(),
        baselines=(),
        bandwidth_bytes_per_s=GPU.bandwidth_bytes_per_s,
    )
    return replace(passed(1000), profile=None, timing=timing)


def test_a_candidate_above_the_roof_is_refused_drawn_and_explained(stage, reply_with):
    loop = stage(
        [reply_with("honest"), reply_with("impossible")],
        {"honest": timed(2.0), "impossible": timed(0.3)},
        device=GPU,
    )
    session = loop.run(rounds=2, repairs=0)
    refused = session.rounds[1]
    assert session.best.number == 0
    assert refused.evaluation.outcome == NotJudged(reason=NotJudgedReason.ABOVE_ROOF)
    assert "less than memory allows" in refused.evaluation.summary
    assert refused.evaluation.findings[0].kind == "above-roof"
    assert refused.decisions[-1].action is Action.REJECT
    assert marks(session)[-1].result == "above: blocked"
    assert any("above the roof, so it blocks" in line for line in describe(session))


def test_a_first_kernel_above_the_roof_does_not_become_the_best(stage, reply_with):
    loop = stage([reply_with("impossible")], {"impossible": timed(0.3)}, device=GPU)
    assert loop.run(rounds=1, repairs=0).best is None


def test_a_closer_look_above_the_roof_blocks_too(stage, reply_with):
    loop = stage([reply_with("fast")], {"fast": timed(1.2)}, closer={"fast": timed(0.5)}, device=GPU)
    assert loop.run(rounds=1, repairs=0).best is None


def test_a_little_above_the_measured_bandwidth_is_believed(stage, reply_with):
    loop = stage([reply_with("reads")], {"reads": timed(0.9)}, device=GPU)
    assert loop.run(rounds=1, repairs=0).best.number == 0


def test_a_problem_that_fits_the_cache_may_be_faster_than_dram(stage, reply_with):
    device = replace(GPU, l2_bytes=64 << 20)
    loop = stage([reply_with("cached")], {"cached": timed(0.3)}, device=device)
    assert loop.run(rounds=1, repairs=0).best.number == 0
