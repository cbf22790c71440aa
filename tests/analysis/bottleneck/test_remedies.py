"""Strategies that answer a cause, held against the strategies of the library."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from cutegen_nb.analysis.bottleneck.remedies import _ANSWERS, FITS, strategies_for
from cutegen_nb.core.problem import WorkloadClass

ROOT = Path(__file__).parents[3]
LIBRARY = {
    item["name"]: item
    for item in tomllib.loads((ROOT / "prompts" / "strategies.toml").read_text(encoding="utf-8"))["strategy"]
}


def test_every_suggested_strategy_is_in_the_library_for_the_same_classes():
    for name, fits in FITS.items():
        assert set(LIBRARY[name].get("classes", ())) == {kind.value for kind in fits}, name
    assert {name for names in _ANSWERS.values() for name in names} == FITS.keys()


def test_no_strategy_is_named_twice_for_a_cause():
    assert all(len(set(names)) == len(names) for names in _ANSWERS.values())


def test_every_answered_cause_is_one_that_a_diagnosis_names():
    """The name of each cause stands as a text in the modules that find causes."""
    folder = ROOT / "cutegen_nb" / "analysis" / "bottleneck"
    texts = {
        node.value
        for path in folder.glob("*causes.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(_ANSWERS) <= texts


@pytest.mark.parametrize("cause", _ANSWERS)
def test_the_likeliest_three_that_fit_a_class_are_suggested(cause):
    for kind in WorkloadClass:
        fitting = [
            name for name in _ANSWERS[cause] if kind.value in LIBRARY[name].get("classes", [kind.value])
        ]
        assert strategies_for(cause, kind) == tuple(fitting[:3]), kind


def test_a_strategy_that_is_not_for_such_work_is_not_suggested():
    assert "coalesced-access" in strategies_for("uncoalesced", WorkloadClass.ELEMENTWISE)
    assert strategies_for("uncoalesced", WorkloadClass.MATMUL) == ("vectorised-tile-loads",)
    assert strategies_for("below-roof", WorkloadClass.MATMUL) == ()
