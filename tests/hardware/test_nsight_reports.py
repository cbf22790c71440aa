"""What an H200 gave under Nsight Compute, as files: both ways of reading agree, and diagnoses follow from counters."""

from __future__ import annotations

import csv
import functools
import io
import json
import lzma
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.analysis.diagnose import diagnose, diagnose_launches
from cutegen_nb.analysis.line_heat import heat
from cutegen_nb.analysis.lines import by_line, spilled_by_line
from cutegen_nb.analysis.roofline import place
from cutegen_nb.analysis.static_text import static_facts_text
from cutegen_nb.core import nsight_metrics as names
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Timing, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.nsight_names import COUNTERPARTS
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.core.round import Relation
from cutegen_nb.core.strategy import Bound
from cutegen_nb.gpu.device import simulated
from cutegen_nb.gpu.nsight_csv import read_raw, with_source
from cutegen_nb.gpu.nsight_profile import profile_of
from cutegen_nb.gpu.nsight_wire import read_report
from cutegen_nb.report.html import render
from cutegen_nb.report.profile_page import KernelSection, page_of, text_of
from cutegen_nb.report.roofline_marks import marks
from cutegen_nb.report.roofline_plot import describe
from cutegen_nb.testing.examples import session_of

HERE = Path(__file__).parent
DATA = HERE / "data" / "nsight"
PLANTED = HERE.parent / "analysis" / "planted"
TOLD = json.loads((DATA / "recorded.json").read_text())
DEVICE = replace(simulated("sm_90a"), name=TOLD["device"])
PLANTS = sorted({row["group"] for row in TOLD["large"] if row["role"]})


def unpacked(name):
    return lzma.decompress((DATA / f"{name}.xz").read_bytes())


@functools.cache
def large():
    recorded = read_raw(unpacked("large_raw.csv").decode(), tool=TOLD["tool"], date=TOLD["date"])
    return with_source(recorded, unpacked("large_source.csv").decode())


@functools.cache
def large_profile():
    return profile_of(large())


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for name in ("small", "others"):
        path = folder / f"{name}.ncu-rep"
        path.write_bytes(unpacked(path.name))
        found[name] = read_report(path)
    return found


@pytest.fixture(scope="module")
def simulated_counts(tmp_path_factory):
    """Counters of the same programs, at the size that was recorded as small, on the simulator."""
    told = tmp_path_factory.mktemp("simulated") / "told.json"
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(HERE / "profiled" / "launch.py"),
        "--simulate",
        "--order",
        str(told),
    ]
    subprocess.run(command, check=True, timeout=240, capture_output=True, cwd=told.parent)
    return {
        name: decode(LaunchProfile, one["launches"][0]).counters
        for name, one in json.loads(told.read_text()).items()
    }


def launched(group, name, size="large"):
    """Row and profile of one program that was run on the H200."""
    index = next(i for i, row in enumerate(TOLD[size]) if (row["group"], row["name"]) == (group, name))
    profile = large_profile()
    return TOLD[size][index], replace(profile, launches=(profile.launches[index],))


def facts_of(row):
    empty = Graph(inputs=(), parameters=(), nodes=(), outputs=())
    work = Workload(graph=empty, flops=row["flops"], least_bytes=row["least_bytes"])
    is_product = row["group"] == "products"
    return ProblemFacts(
        workload_class=WorkloadClass.MATMUL if is_product else WorkloadClass.ELEMENTWISE,
        full=work, scaled=work, dtype="float16" if is_product else "float32",
    )  # fmt: skip


def diagnosed(row, profile):
    seen = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="", device="", profile=profile)
    return diagnose(facts_of(row), seen, DEVICE)


def planted(group, role):
    row = next(row for row in TOLD["large"] if (row["group"], row["role"]) == (group, role))
    return launched(group, row["name"])


def cause_of(group):
    text = (PLANTED / f"{group}.py").read_text()
    return (
        next(line for line in text.splitlines() if line.startswith("FAULT, CAUSE"))
        .rpartition('"')[0]
        .rpartition('"')[2]
    )


def planted_lines(group):
    text = (PLANTED / f"{group}.py").read_text()
    return {number for number, line in enumerate(text.splitlines(), start=1) if "# planted" in line}


# --- reading -------------------------------------------------------------------------------------------------------


def test_a_report_names_device_tool_day_and_each_kernel_apart(reports):
    found = reports["small"]
    assert (found.device, found.architecture, found.tool) == ("NVIDIA H200", "sm_90", TOLD["tool"])
    assert found.date == TOLD["date"]
    assert len(found.kernels) == len(TOLD["small"])
    assert [one.kernel.split("_tensorptr")[0] for one in found.kernels[:3]] == [
        "kernel_cutlass_relu_kernel", "kernel_cutlass_softmax_kernel", "kernel_cutlass_rmsnorm_kernel",
    ]  # fmt: skip
    profile = profile_of(found)
    assert profile.source is ProfileSource.NSIGHT
    for part in ("Nsight Compute 2025.3.1", "NVIDIA H200", "CUDA 13.0", TOLD["date"], "clocks not locked"):
        assert part in profile.made_by


def test_the_raw_page_keeps_units_and_finds_columns_by_name():
    kernel = large().kernels[0]
    assert kernel.metrics["gpu__time_duration.sum"].unit == "ns"
    assert kernel.metrics["dram__bytes_read.sum"].unit == "byte"
    assert kernel.metrics[names.DRAM_SHARE].unit == "%"
    heading = next(csv.reader(io.StringIO(unpacked("large_raw.csv").decode())))
    numbers = [name for name in heading if "__" in name]
    assert len(kernel.metrics) > 0.95 * len(numbers)


def test_lines_come_from_the_machine_code_in_the_report_and_from_the_source_page_alike(reports):
    """The two files are of two runs; what a kernel's code says of its lines is the same in both."""
    small = {one.kernel: one for one in reports["small"].kernels}
    for kernel in large().kernels:
        if "transpose" not in kernel.kernel and "tensor_kernel" not in kernel.kernel:
            continue
        twin = next(
            one
            for name, one in small.items()
            if name.split("_tensorptr")[0] == kernel.kernel.split("_tensorptr")[0]
        )
        places = {one.line for one in kernel.instructions if one.counts.get("inst_executed")}
        assert places == {one.line for one in twin.instructions if one.counts.get("inst_executed")}
        assert {Path(one.file).name for one in twin.instructions} == {
            Path(one.file).name for one in kernel.instructions
        }


def test_counts_by_line_add_up_to_those_of_the_launch():
    for launch in large_profile().launches:
        own = Counters()
        for line in launch.lines:
            own += line.counters
        assert own.warp_instructions == launch.counters.warp_instructions
        assert own.gmem_sectors == launch.counters.gmem_sectors
        assert own.smem_wavefronts == launch.counters.smem_wavefronts


def test_arithmetic_is_that_of_the_problem_and_conversions_are_none():
    """Halves that are converted and constants that tensor cores make are instructions and no arithmetic."""
    for name, pipe in (("naive", "cuda.f32"), ("tiled", "cuda.f32"), ("tensor_cores", "tensor.f16")):
        row, profile = launched("products", name)
        assert profile.counters.flops == {pipe: row["flops"]}
    _, profile = launched("rows", "rmsnorm")
    assert set(profile.counters.flops) == {"cuda.f32"}


def test_a_profile_survives_its_encoding():
    profile = large_profile()
    assert decode(Profile, json.loads(json.dumps(encode(profile)))) == profile


def test_kernels_by_others_are_read_without_error(reports):
    profile = profile_of(reports["others"])
    assert len(profile.launches) == 7
    assert any("SoftMaxForward" in one.kernel for one in profile.launches)
    assert any(one.kernel.startswith("nvjet") for one in profile.launches)
    assert profile.launches[-1].kernel == "row_sum_kernel"
    sections = [
        KernelSection(profile=one, diagnosis=diagnose_launches(one, DEVICE), sources={})
        for one in (replace(profile, launches=(launch,)) for launch in profile.launches)
    ]
    bounds = {one.launch.kernel[:16]: one.diagnosis.bound for one in sections}
    assert bounds["nvjet_sm90_hsh_2"] is Bound.COMPUTE
    assert bounds["row_sum_kernel"] is Bound.MEMORY
    assert "nvjet" in text_of(profile, sections, lines=False)
    assert "nvjet" in page_of("others", profile, sections)


# --- counts that agree with the simulator's -------------------------------------------------------------------------


def test_the_same_kernels_simulated_have_the_same_counts(reports, simulated_counts):
    """Every figure with a counterpart, within 1 %: equal, but for what is told in `COUNTERPARTS`."""
    profile = profile_of(reports["small"])
    compared = 0
    for row, launch, recorded in zip(TOLD["small"], profile.launches, reports["small"].kernels, strict=True):
        ours = simulated_counts.get(f"{row['group']} {row['name']}")
        if ours is None:
            continue
        for item in COUNTERPARTS:
            measured = [recorded.metrics.get(f"{name}.sum") for name in item.metrics]
            is_tensor = item.figures[0].startswith("instructions.tensor")
            if not measured or None in measured or (is_tensor and not item.count(ours)):
                continue  # tensor cores also make constants, which this run did not count apart
            theirs = sum(one.value for one in measured)
            assert item.count(ours) == pytest.approx(theirs, rel=0.01), (row["name"], item.figures)
            compared += bool(theirs)
        assert launch.counters.gmem_sectors == ours.gmem_sectors, row["name"]
        assert launch.counters.smem_wavefronts == ours.smem_wavefronts, row["name"]
    assert compared > 40


# --- diagnoses ------------------------------------------------------------------------------------------------------


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
        "What a warp’s time goes to".replace("’", "&#x27;"),
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


def test_a_report_says_what_was_compiled_as_the_simulator_does(reports):
    profile = profile_of(reports["small"])
    told = {row["name"]: launch for row, launch in zip(TOLD["small"], profile.launches, strict=True)}
    crowded = told["crowded"]
    assert crowded.resources.registers == 255
    assert crowded.resources.spill_store_bytes > 0
    moved = spilled_by_line(crowded)
    assert max(moved, key=moved.get) in planted_lines("registers")
    assert sum(moved.values()) == crowded.resources.spill_store_bytes + crowded.resources.spill_load_bytes
    (words,) = static_facts_text(replace(profile, launches=(crowded,)))
    assert "255 registers a thread, spills: " in words
    assert "LDG.32 × 264" in words
    assert static_facts_text(replace(profile, launches=(told["shared_out"],)))[0].count("spills: none") == 1
    (foreign, *_) = static_facts_text(profile_of(reports["others"]))
    assert "spills" not in foreign  # this report was made without machine code
