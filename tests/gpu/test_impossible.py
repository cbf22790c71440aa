"""Nine kernels too fast for memory: each complete and refused, on a GPU by two independent checks as recorded."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cutegen_nb
from cutegen_nb.analysis.screen import screen
from cutegen_nb.core.evaluation import Severity
from cutegen_nb.core.evaluation import Tier as T

FOLDER = Path(__file__).with_name("impossible")
NAMES = sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))
RECORDS = sorted((FOLDER / "recorded").glob("nvidia_*.json"))
COMPUTED = FOLDER / "recorded" / "computed_real.json"
SMALL = FOLDER / "recorded" / "simulator_small.json"
ONLY_THE_FLOOR = "96_huber_loss"
"""Every sixteenth pair of a thousand million, evenly spread, has the mean of all at the inputs that were tried on
the GPU: at its real shape nothing but its time gave it away there, and at small shapes its values do. Single large
elements were added to "every part of every input" afterwards: what they do at the real shape has been computed
(``impossible/computed.py``), not run on a GPU."""
NUMBERS = ["04", "23", "37", "39", "49", "53", "96", "98", "99"]
QUICK = ("53_min_reduction", "99_triplet_margin_loss")


@pytest.fixture(scope="module")
def run():
    spec = importlib.util.spec_from_file_location("impossible_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_all_nine_are_there_with_their_problems(run):
    assert [name[:2] for name in NAMES] == NUMBERS
    assert set(run.OPERATIONS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_complete_candidate(name):
    source = (FOLDER / f"{name}.py").read_text()
    assert not [item for item in screen(source) if item.severity is Severity.DECIDES]


@pytest.mark.parametrize("name", QUICK)
def test_it_runs_at_small_shapes_and_is_refused_for_its_values(run, judge, name):
    problem = run.OPERATIONS[name].problem(name, small=True)
    found = judge(problem.source, (FOLDER / f"{name}.py").read_text(), T.A)
    assert found.label == "WRONG_VALUES", found.summary


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_on_a_gpu_at_real_shapes_two_independent_checks_refuse_each(run, path):
    record = json.loads(path.read_text())
    assert record["device"].startswith("NVIDIA ")
    assert record["shapes"] == "real"
    assert record["date"]
    assert [row["name"] for row in record["kernels"]] == NAMES
    for row in record["kernels"]:
        fewest = 1 if row["name"] == ONLY_THE_FLOOR else run.FEWEST
        assert len(row["refused_by"]) >= fewest, row
        assert row["digest"] == hashlib.sha256((FOLDER / f"{row['name']}.py").read_bytes()).hexdigest()
        for refusal in row["refusals"]:
            assert refusal["evidence"]


def test_a_sample_that_only_its_time_gives_away_is_refused_for_its_values_at_small_shapes():
    (row,) = json.loads(SMALL.read_text())["kernels"]
    assert row["name"] == ONLY_THE_FLOOR
    assert "stress inputs" in row["refused_by"]
    assert row["digest"] == hashlib.sha256((FOLDER / f"{row['name']}.py").read_bytes()).hexdigest()


def test_large_elements_refuse_the_sample_at_its_real_shape_by_computation():
    found = json.loads(COMPUTED.read_text())
    assert found["name"] == ONLY_THE_FLOOR
    assert found["elements"] == 1 << 30
    assert found["digest"] == hashlib.sha256((FOLDER / f"{ONLY_THE_FLOOR}.py").read_bytes()).hexdigest()
    assert "no GPU" in found["how"]
    assert found["own_inputs"]["sampled_passes"]
    used = found["large_elements"][-1]
    assert used["used"]
    assert used["gates_away"] >= 50
    for row in used["by_number_read"]:
        assert row["reference_passes"]
        assert not row["sampled_passes"]


def test_the_computation_says_the_same_of_fewer_elements(tmp_path):
    written = tmp_path / "computed.json"
    command = [sys.executable, str(FOLDER / "computed.py"), "--count", str(1 << 20), "--json", str(written)]
    environment = os.environ | {"PYTHONPATH": str(Path(cutegen_nb.__file__).parents[1])}
    subprocess.run(command, check=True, capture_output=True, timeout=120, env=environment)
    used = json.loads(written.read_text())["large_elements"][-1]
    assert used["used"]
    assert not any(row["sampled_passes"] for row in used["by_number_read"])
