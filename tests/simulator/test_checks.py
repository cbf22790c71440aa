"""Each check finds exactly its fault: kernels with one fault, their twins one token away, honest look-alikes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = HERE / "faults" / "kernels.py"
FAULTS = {
    "barrier_missing": ("race", "y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]"),
    "second_barrier_missing": ("race", "shared[tidx] = x[bidx * THREADS + tidx] * cutlass"),
    "everybody_writes": ("race", "shared[0] = cutlass.Float32(tidx)"),
    "counters_not_ready": ("race", "cute.arch.atomic_add"),
    "counters_read_early": ("race", "y[bidx * THREADS + tidx] = shared[tidx]"),
    "wrong_named_barrier": ("race", "y[bidx * THREADS + tidx] = shared[tidx - 64]"),
    "half_written": ("uninitialised-read", "y[bidx * THREADS + tidx] = cutlass.max(shared"),
    "register_tile_half_written": ("uninitialised-read", "y[bidx * THREADS + tidx] = cutlass.max(tile"),
    "output_accumulated": ("uninitialised-read", "y[bidx * THREADS + tidx] = y[bidx"),
    "copy_not_waited_for": ("async-hazard", "y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]"),
    "copy_overwritten": ("async-hazard", "shared[tidx] = cutlass.Float32(3.0)"),
    "copy_waited_for_by_one": ("race", "y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]"),
    "barrier_in_a_branch": ("divergent-barrier", "cute.arch.sync_threads()"),
    "barrier_for_too_many": ("deadlock", "cute.arch.barrier(barrier_id=1, number_of_threads=128)  # half"),
    "ctas_write_over_one_another": ("cta-order", "y[tidx] = value"),
    "cta_reads_its_neighbour": ("cta-order", "value = y[(bidx + 1)"),
    "past_the_end": ("out-of-bounds", "y[bidx * THREADS + tidx] = x[bidx * 128"),
    "past_shared_memory": ("out-of-bounds", "y[bidx * THREADS + tidx] = shared[(tidx"),
    "too_much_shared_memory": ("launch-refused", ""),
}
HONEST = (
    "tail_masked_at_the_store", "one_value_by_all", "warp_owns_its_slice", "producer_and_consumer", "in_place",
    "two_stages",
)  # fmt: skip


def line_in(kernel, beginning):
    lines = SOURCE.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"def {kernel}_kernel"))
    return next(
        number + 1 for number in range(start, len(lines)) if lines[number].strip().startswith(beginning)
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "faults" / "template.py"), str(folder)],
        capture_output=True, text=True, timeout=240, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "RESULT" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout.rpartition("RESULT")[2])


@pytest.mark.parametrize("kernel", FAULTS)
def test_a_kernel_with_one_fault_has_exactly_that_finding_at_its_line(found, kernel):
    kind, beginning = FAULTS[kernel]
    result = found[kernel]["faulty"]
    (finding,) = result["findings"]
    assert finding["kind"] == kind
    if kind == "launch-refused":
        assert "240,000 bytes of shared memory" in finding["message"]
        assert "a CTA on sm_80 has 166,912 at most" in finding["message"]
        assert result["error"]
        return
    assert finding["line"] == line_in(kernel, beginning)
    assert finding["severity"] == ("flag" if kind == "divergent-barrier" else "decides")
    assert finding["cta"] is not None
    assert "from kernels.py:" in finding["message"]


@pytest.mark.parametrize("kernel", FAULTS)
def test_its_twin_one_token_away_is_clean(found, kernel):
    assert found[kernel]["clean"] == {"error": "", "findings": []}


@pytest.mark.parametrize("kernel", HONEST)
def test_an_honest_kernel_that_looks_alike_is_not_accused(found, kernel):
    assert found[kernel]["clean"] == {"error": "", "findings": []}


def test_a_race_names_both_threads_and_both_lines(found):
    (finding,) = found["barrier_missing"]["faulty"]["findings"]
    line = line_in("barrier_missing", "shared[tidx] = x")
    assert f"Thread (127, 0, 0) of CTA (0, 0, 0) writes byte 508 of shared memory (from kernels.py:{line})" in (
        finding["message"]
    )
    assert "thread (0, 0, 0) reads it" in finding["message"]


def test_a_copy_under_way_names_the_line_that_issued_it(found):
    (finding,) = found["copy_not_waited_for"]["faulty"]["findings"]
    assert f"cp.async issued from kernels.py:{line_of('cute.copy(atom')}" in finding["message"]


def line_of(beginning):
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))
