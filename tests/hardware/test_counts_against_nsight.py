"""Sectors, requests, wavefronts and products that we count, against Nsight Compute's on the same kernels."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from suite import traffic

from cutegen_nb.core.nsight.names import COUNTERPARTS, figure
from cutegen_nb.core.profile import Access, Counters

HERE = Path(__file__).parent
COUNTERS, EXPLAINED = HERE / "data" / "h200_counters.json", HERE / "data" / "explained.json"
TOLERANCE = 0.01

recorded_only = pytest.mark.skipif(
    not COUNTERS.exists(),
    reason="no counters of an H200 are recorded yet; on a GPU host run `python tests/hardware/nsight.py --out FOLDER`",
)


def as_counters(found):
    """Our counters again, from JSON."""
    accesses = {
        name: {kind: Access(**one) for kind, one in found[name].items()}
        for name in ("gmem_accesses", "smem_accesses")
    }
    plain = {name: value for name, value in found.items() if name not in {"group", "findings", *accesses}}
    return Counters(**plain, **accesses)


def nsights():
    """Nsight Compute's counters by kernel and metric."""
    record = json.loads(COUNTERS.read_text())
    return {
        name: {
            metric: value for metric, value in zip(record["metrics"], row, strict=True) if value is not None
        }
        for name, row in record["kernels"].items()
    }


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counted")
    command = [sys.executable, "-W", "ignore", str(HERE / "nsight.py"), "--simulate", "--out", str(folder)]
    finished = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    return json.loads((folder / "counted.json").read_text())


def test_every_pattern_runs_and_has_a_name_of_its_own(counted):
    names = [pattern.name for pattern in traffic.patterns()]
    assert len(set(names)) == len(names)
    assert {name: one["failure"] for name, one in counted.items() if "failure" in one} == {}
    assert set(names) <= set(counted)


def test_no_pattern_is_accused_of_a_fault(counted):
    assert {name: one["findings"] for name, one in counted.items() if one.get("findings")} == {}


@recorded_only
def test_counts_are_within_one_percent_of_nsight_compute_or_the_difference_is_explained(counted):
    kernels = nsights()
    explained = json.loads(EXPLAINED.read_text())["counts"] if EXPLAINED.exists() else {}
    used, told = set(), []
    for name, metrics in kernels.items():
        ours = as_counters(counted[name])
        for one in COUNTERPARTS:
            if not one.metrics or not all(metric in metrics for metric in one.metrics):
                continue
            theirs = sum(metrics[metric] for metric in one.metrics)
            mine = sum(figure(ours, path) for path in one.figures)
            label = "+".join(one.figures)
            if abs(mine - theirs) <= TOLERANCE * max(theirs, mine):
                continue
            reason = next((key for key in explained if key in {f"{name}: {label}", label}), None)
            used.add(reason)
            if reason is None:
                told.append(f"{name}: {label} {mine}, Nsight {theirs}")
    assert not told, "\n".join(told)
    assert set(explained) <= used, f"agree now; take their explanations away: {sorted(set(explained) - used)}"


@recorded_only
def test_every_counterpart_is_put_to_the_test_somewhere():
    kernels = nsights().values()
    idle = [
        one.figures
        for one in COUNTERPARTS
        if one.metrics and not any(sum(metrics.get(name, 0) for name in one.metrics) for metrics in kernels)
    ]
    assert idle == []


@recorded_only
def test_the_documentation_says_how_much_was_compared_and_how_little_differs():
    page = " ".join((HERE.parents[1] / "docs" / "explanation" / "simulator.md").read_text().split())
    kernels = nsights()
    compared = sum(
        bool(one.metrics) and all(metric in metrics for metric in one.metrics)
        for metrics in kernels.values()
        for one in COUNTERPARTS
    )
    explained = json.loads(EXPLAINED.read_text())
    cases = json.loads((COUNTERS.parent / "h200.json").read_text())["cases"]
    assert (explained["values"], explained["not_recorded"], len(explained["counts"])) == ({}, {}, 5)
    assert f"{len(cases):,} small cases agree" in page
    assert f"Of {compared:,} memory and tensor-core counters of {len(kernels)} kernels" in page
    assert "all but five are within 1 %, and those are explained by name" in page


@recorded_only
def test_every_pattern_was_profiled():
    kernels = nsights()
    assert {pattern.name for pattern in traffic.patterns()} <= set(kernels)
