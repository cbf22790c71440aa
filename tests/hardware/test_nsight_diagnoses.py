"""Conclusions from the counters of an H200: causes with their lines, bounds, and the pages that show them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nsight_data import (
    DEVICE,
    HERE,
    PLANTED,
    PLANTS,
    TOLD,
    cause_of,
    diagnosed,
    facts_of,
    launched,
    planted,
    planted_lines,
)

from cutegen_nb.analysis.bottleneck.diagnose import diagnose_launches
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.source.lines import by_line
from cutegen_nb.analysis.tables.line_heat import heat
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.strategy import Bound
from cutegen_nb.core.timing import Timing
from cutegen_nb.report.html.session_page import render
from cutegen_nb.report.program.profile import KernelSection, page_of
from cutegen_nb.report.roofline.marks import marks
from cutegen_nb.report.roofline.plot import describe
from cutegen_nb.testing.examples import session_of


@pytest.mark.parametrize("group", PLANTS)
def test_a_planted_fault_is_named_first_from_hardware_counters_with_its_line(group):
    row, profile = planted(group, "fault")
    found = diagnosed(row, profile)
    first = found.causes[0]
    assert first.name == cause_of(group), found.text()
    assert first.line in planted_lines(group)
    assert heat(profile, found)[0].hottest in planted_lines(group)
    assert first.strategies
    assert found.source == "Nsight Compute"
    assert all(item.name and item.value for item in first.readings)


@pytest.mark.parametrize("group", PLANTS)
def test_its_twin_has_no_such_cause_on_hardware_either(group):
    found = diagnosed(*planted(group, "clean"))
    assert cause_of(group) not in [one.name for one in found.causes], found.text()


@pytest.mark.parametrize("group", PLANTS)
def test_the_fault_costs_time_on_hardware(group):
    """That the plants are faults at all: each is slower than its twin for the same work."""
    (_, fault), (_, clean) = planted(group, "fault"), planted(group, "clean")
    assert fault.launches[0].duration_s > 1.3 * clean.launches[0].duration_s


def test_bounds_are_those_that_the_counters_argue_for():
    """The argument for each, from the H200's own figures."""
    expected = {
        ("rows", "relu"): (Bound.MEMORY, "DRAM"),
        ("rows", "softmax"): (Bound.MEMORY, "DRAM"),
        ("rows", "rmsnorm"): (Bound.MEMORY, "DRAM"),
        ("products", "naive"): (Bound.MEMORY, "L1"),
        ("products", "tiled"): (Bound.MEMORY, "shared memory"),
        ("products", "tensor_cores"): (Bound.LATENCY, "shared memory"),
    }
    for key, (bound, unit) in expected.items():
        found = diagnosed(*launched(*key))
        assert (found.bound, found.demands[0].unit) == (bound, unit), found.text()
    # Streams: DRAM at 78–81 % of its peak, what it moves is the least there is, nothing else above a third.
    for name in ("relu", "softmax", "rmsnorm"):
        row, profile = launched("rows", name)
        found = diagnosed(row, profile)
        assert found.demands[0].peak_fraction > 0.75
        assert found.demands[1].peak_fraction < 0.35
        assert profile.counters.gmem_sectors * 32 == row["least_bytes"]
    # Naive: every request is served by L1 (99 % hits), which is at its peak with 4.5 times the sectors needed.
    row, profile = launched("products", "naive")
    assert profile.launches[0].metric(names.L1_HITS) > 98
    assert [one.name for one in diagnosed(row, profile).causes][:2] == ["uncoalesced", "repeated-requests"]
    # Tiled: one wavefront of shared memory for two multiply-adds a thread; conflicts are 6 %, not the cause.
    assert diagnosed(*launched("products", "tiled")).causes[0].name == "shared-reuse"
    # Tensor cores: one stage, 12 warps a multiprocessor: the pipe idles 62 % of the time while copies come.
    row, profile = launched("products", "tensor_cores")
    found = diagnosed(row, profile)
    assert found.causes[0].name == "unpipelined-loads"
    assert "occupancy" in [one.name for one in found.causes]
    assert profile.launches[0].metric(names.PIPE_SHARES["tensor pipe"]) < 40


def test_each_cause_cites_metrics_of_nsight_compute_with_values():
    for row in TOLD["large"]:
        _, profile = launched(row["group"], row["name"])
        for cause in diagnosed(row, profile).causes:
            cited = [item.name for item in cause.readings]
            assert cited
            assert not any(name.startswith(("gmem_", "smem_", "warp_instr")) for name in cited), cited


def test_waits_are_put_to_the_load_that_is_waited_for_and_not_to_who_waits():
    """The assembler lets sums of the tile before run into the wait: the waiting instruction is one of those."""
    _, profile = launched("unpipelined", "waiting")
    own = by_line(profile).own
    waiting = max(own, key=lambda line: own[line].stall_samples.get("long_scoreboard", 0))
    awaited = max(own, key=lambda line: own[line].awaited_samples)
    assert waiting not in planted_lines("unpipelined")
    assert awaited in planted_lines("unpipelined")


def test_a_page_of_measured_kernels_shows_units_waits_and_lines():
    _, profile = launched("banks", "conflicting")
    file = next(line.file for line in profile.launches[0].lines)
    source = (PLANTED / "banks.py").read_text()
    section = KernelSection(
        profile=profile, diagnosis=diagnose_launches(profile, DEVICE), sources={file: source}
    )
    page = page_of("banks", profile, [section])
    for words in (
        "How busy each unit was",
        "What a warp&#39;s time goes to (Nsight Compute)",
        "bank-conflicts",
        "# planted",
    ):
        assert words in page, words


def measured_session():
    """The three products of halves as rounds of a session on the H200; times are those under the profiler."""
    source = (HERE / "profiled" / "products.py").read_text()
    session = session_of(Relation.FIRST, Relation.FASTER, Relation.FASTER, name="product")
    rounds, facts = [], None
    for item, name in zip(session.rounds, ("naive", "tiled", "tensor_cores"), strict=True):
        row, profile = launched("products", name)
        facts = facts_of(row)
        timing = Timing(
            median_ms=1e3 * profile.launches[0].duration_s,
            samples_ms=(),
            baselines=(),
            bandwidth_bytes_per_s=4e12,
        )
        found = Evaluation(
            outcome=Judged(verdict=Verdict.PASSED),
            summary="right",
            device=DEVICE.name,
            profile=profile,
            timing=timing,
        )
        attempt = replace(
            item.attempts[0],
            candidate=Candidate(source=f"# {name}\n{source}", author="test"),
            evaluation=found,
        )
        rounds.append(replace(item, attempts=(attempt,)))
    gpu = replace(DEVICE, kind=DeviceKind.GPU)
    return replace(session, facts=facts, device=gpu, rounds=tuple(rounds))


@pytest.mark.long
def test_a_session_measured_on_the_h200_is_rendered_with_roofline_counters_and_diagnoses():
    page = render(measured_session())
    for words in (
        "How busy each unit was",
        "shared-reuse",
        "unpipelined-loads",
        "uncoalesced",
        "data:image/png",
    ):
        assert words in page, words
    said = " ".join(describe(measured_session()))
    assert "simulated" not in said


def test_the_trajectory_rises_under_the_roofs():
    found = marks(measured_session())
    heights = [mark.achieved for mark in found]
    assert [rate for _, rate in heights] == sorted(rate for _, rate in heights)
    roof = place(facts_of(launched("products", "naive")[0]), DEVICE)
    assert all(intensity <= roof.problem.intensity for intensity, _ in heights)
    intensity, rate = heights[-1]
    assert rate < min(roof.ceilings[-1].flops_per_s, intensity * roof.bandwidth_bytes_per_s)
