"""Nine kernels too fast for memory: each complete and refused, on a GPU by two independent checks as recorded."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from cutegen_nb.analysis.source.screen import screen
from cutegen_nb.core.evaluation import Tier as T
from cutegen_nb.core.finding import Severity

FOLDER = Path(__file__).with_name("impossible")
NAMES = sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))
RECORDS = sorted((FOLDER / "recorded").glob("nvidia_*.json"))
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


@pytest.mark.first(1)
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
        assert len(row["refused_by"]) >= run.FEWEST, row
        assert row["digest"] == hashlib.sha256((FOLDER / f"{row['name']}.py").read_bytes()).hexdigest()
        for refusal in row["refusals"]:
            assert refusal["evidence"]
