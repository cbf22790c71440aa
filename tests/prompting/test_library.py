from __future__ import annotations

import pytest

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.profile import Counters
from cutegen_nb.prompting.library import PromptLibrary, shipped_library


def test_every_workload_class_has_strategies():
    for workload_class in WorkloadClass:
        assert shipped_library().menu(workload_class), workload_class


def test_a_strategy_has_a_unique_name_and_names_counters_that_exist():
    strategies = shipped_library().strategies()
    names = [item.name for item in strategies]
    assert len(set(names)) == len(names)
    known = {*Counters.__slots__, "gmem_sectors", "latency_ms"}
    for item in strategies:
        assert item.effects, item.name
        assert {effect.counter for effect in item.effects} <= known, item.name


def test_a_wrong_entry_is_named(tmp_path):
    (tmp_path / "strategies.toml").write_text(
        '[[strategy]]\nname = "x"\nstatement = "y"\nclasses = ["tea"]\n'
    )
    with pytest.raises(ConfigurationError, match=r"'x'.*tea"):
        PromptLibrary(tmp_path).strategies()
