from __future__ import annotations

import pytest

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.stage import Stage
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


def test_a_fused_graph_is_offered_its_own_strategies_then_those_of_the_part_that_dominates():
    menu = shipped_library().menu(WorkloadClass.FUSED, (WorkloadClass.CONVOLUTION, WorkloadClass.NORM))
    names = [item.name for item in menu]
    assert names[0] == "algebra-first"
    assert names.index("implicit-product") < names.index("fuse-one-pass")
    assert "row-in-registers" not in names
    assert len(set(names)) == len(names)


def test_a_product_with_an_epilogue_is_tiled_first_and_goes_to_the_tensor_cores_before_finer_steps():
    names = [item.name for item in shipped_library().menu(WorkloadClass.FUSED, (WorkloadClass.MATMUL,))]
    assert names[:2] == ["shared-memory-tiles", "tensor-core-mma"]
    assert names.index("algebra-first") > names.index("fused-epilogue")  # no graph to rearrange


def test_numbers_and_answers_to_counters_are_of_later_stages_and_fit_every_class_of_work():
    for workload_class in WorkloadClass:
        stages = {item.stage for item in shipped_library().menu(workload_class)}
        assert stages == {Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE}, workload_class


def test_tensor_cores_are_for_half_precision_alone():
    mma = next(item for item in shipped_library().strategies() if item.name == "tensor-core-mma")
    assert mma.dtypes == ("float16", "bfloat16")
