"""What a roofline's picture holds: heights only for what was measured, arrows between revisions, what blocks."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from cutegen_nb.analysis.hardware.hierarchy import DRAM, L2
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.history.summary import floor
from cutegen_nb.core.evaluation import Evaluation, NotJudged, NotJudgedReason
from cutegen_nb.core.timing import Timing
from cutegen_nb.evaluator.process.device import simulated
from cutegen_nb.report.roofline.marks import marks
from cutegen_nb.report.roofline.plot import _LIGHT, _legend, _numbers, _spread, describe, png

A100 = simulated("sm_80")


@pytest.fixture
def timed(session, gpu_session):
    """A session on a GPU whose first rounds took so many times the floor, and other evaluations where given."""

    def made(*multiples, device=gpu_session.device):
        floor_ms = place(session.facts, gpu_session.device).floor_ms
        passed = replace(session.rounds[0].evaluation, profile=None)
        evaluations = [
            item if isinstance(item, Evaluation) else replace(passed, timing=timing(item * floor_ms))
            for item in multiples
        ]
        rounds = tuple(
            replace(item, attempts=(replace(item.attempts[-1], evaluation=found),))
            for item, found in zip(session.rounds, evaluations, strict=False)
        )
        return replace(session, rounds=rounds, device=device)

    return made


def timing(median_ms):
    return Timing(median_ms=median_ms, samples_ms=(), baselines=(), bandwidth_bytes_per_s=4.28e12)


def test_simulated_kernels_have_intensities_and_no_rate(session):
    found = marks(replace(session, device=A100))
    assert [mark.number for mark in found] == [0, 1, 2, 3]
    assert all(mark.achieved is None and mark.share is None for mark in found)
    assert dict(found[0].intensities) == {DRAM: pytest.approx(1.0), L2: pytest.approx(0.125)}
    assert dict(found[2].intensities) == {DRAM: pytest.approx(1.0), L2: pytest.approx(1.0)}


def test_a_timed_kernel_whose_counts_are_simulated_still_has_only_simulated_intensity(session, timed):
    first = session.rounds[0].evaluation
    (mark,) = marks(timed(replace(first, timing=timing(3.0))))
    assert mark.achieved is None


def test_each_kernel_is_joined_to_the_one_it_was_made_from(session):
    assert [mark.came_from for mark in marks(session)] == [None, 0, 1, 2]


def test_a_measured_kernel_stands_at_its_rate_and_its_share_of_the_floor(timed):
    given = timed(2)
    (mark,) = marks(given)
    seconds = given.rounds[0].evaluation.timing.median_ms * 1e-3
    assert mark.share == pytest.approx(0.5)
    assert mark.achieved == (pytest.approx(1.0), pytest.approx(given.facts.full.flops / seconds))
    assert not mark.above


@pytest.mark.long
@pytest.mark.parametrize("refused", [False, True])
def test_a_kernel_above_the_roof_is_drawn_said_and_blocks(timed, refused):
    """Whether the evaluator refused it or let it pass."""
    found = timed(0.4).rounds[0].evaluation
    if refused:
        found = replace(found, outcome=NotJudged(reason=NotJudgedReason.ABOVE_ROOF))
    session = timed(2, found)
    mark = marks(session)[-1]
    assert mark.result == "above: blocked"
    assert "less than memory allows" in mark.above
    assert "This is above the roof, so it blocks" in describe(session)[-1]
    assert png(session) != png(timed(2))


def test_a_time_that_reads_beat_the_copy_by_does_not_block_and_is_explained(timed):
    session = timed(0.95)
    assert not marks(session)[0].above
    assert "blocks nothing" in describe(session)[-1]


def test_tensors_that_fit_the_l2_may_be_faster_than_dram(timed, gpu_session):
    cached = replace(gpu_session.device, l2_bytes=gpu_session.facts.full.least_bytes // 2)
    assert not marks(timed(0.4, device=cached))[0].above


def test_the_roofs_are_those_of_the_gpu_that_times_are_estimated_for(session):
    """The simulator runs the code of an sm_80; its comparisons name the GPU of the estimates."""
    first, *others = replace(session, device=A100).rounds
    said = "The first passing revision: estimated 35.2 ms on NVIDIA H200, bound by L2."
    compared = replace(first, comparison=replace(first.comparison, reason=said))
    estimated = replace(session, device=A100, rounds=(compared, *others))
    text = "\n".join(describe(estimated))
    assert "NVIDIA H200: bandwidth 4.80 TB/s" in text
    assert "cuda.f32: 67.0 TFLOP/s" in text
    assert "A100" not in text
    assert floor(estimated).endswith("on NVIDIA H200, computed as bytes ÷ bandwidth")


def test_a_device_without_a_published_l2_bandwidth_has_no_such_roof(session):
    text = "\n".join(describe(replace(session, device=simulated("sm_100a"))))
    assert "L2:" not in text
    assert "shared memory: 37.5 TB/s" in text


@pytest.mark.every(test=3)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("revisions", [0, 1, 4])
@pytest.mark.parametrize("architecture", ["sm_80", "sm_100a"])
def test_the_picture_is_as_wide_as_a_notebook_shows_and_grows_by_a_row_a_kernel(
    session, revisions, architecture
):
    image = png(replace(session, rounds=session.rounds[:revisions], device=simulated(architecture)))
    assert image is not None
    width, height = struct.unpack(">II", image[16:24])
    assert width == 1350
    assert 700 < height < 1100


def test_the_star_is_in_the_legend(session):
    canvas = Figure()
    _legend(canvas, place(session.facts, session.device), (), _LIGHT, by_share=False)
    [legend] = canvas.legends
    assert [text.get_text() for text in legend.get_texts()][-1] == "the problem at its floor"
    assert legend.legend_handles[-1].get_marker() == "*"


def test_labels_that_would_meet_are_moved_apart_and_numbers_in_a_row_are_said_as_one(session):
    assert _spread([1.0, 1.01, 3.0], 0.5) == [1.0, 1.5, 3.0]
    found = marks(session)
    assert _numbers(found) == "r0–r3"
    assert _numbers((found[0], found[2], found[3])) == "r0, r2–r3"
