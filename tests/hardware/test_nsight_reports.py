"""Reports of Nsight Compute from an H200: both ways of reading agree, and counts are the simulator's."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from nsight_data import DEVICE, HERE, TOLD, large, large_profile, launched, planted_lines, unpacked

from cutegen_nb.analysis.bottleneck.diagnose import diagnose_launches
from cutegen_nb.analysis.source.lines import spilled_by_line
from cutegen_nb.analysis.tables.compiled_code_text import static_facts_text
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.nsight.names import COUNTERPARTS
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound
from cutegen_nb.evaluator.tools.ncu_profile import profile_of
from cutegen_nb.evaluator.tools.ncu_rep_file import read_report
from cutegen_nb.report.program.profile import KernelSection, page_of, text_of


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


# --- counts that agree with the simulator's -------------------------------------------------------------------------


@pytest.mark.long
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
