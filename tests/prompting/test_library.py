from __future__ import annotations

import pytest

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Optimisation
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
    assert names[:3] == ["fp16x2", "shared-memory-tiles", "tensor-core-mma"]
    assert names.index("algebra-first") > names.index("fused-epilogue")  # no graph to rearrange


def test_numbers_and_answers_to_counters_are_of_later_stages_and_fit_every_class_of_work():
    for workload_class in WorkloadClass:
        stages = {item.stage for item in shipped_library().menu(workload_class)}
        assert stages == {Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE}, workload_class


def strategy(name: str):
    return next(item for item in shipped_library().strategies() if item.name == name)


def test_tensor_cores_are_for_half_precision_and_by_three_products_for_fp32():
    assert strategy("tensor-core-mma").dtypes == ("float16", "bfloat16")
    three = strategy("tf32x3")
    assert three.dtypes == ("float32",)
    assert three.absent == (Optimisation.TENSOR_CORES,)
    assert three.classes == strategy("tensor-core-mma").classes


def test_no_strategy_excludes_what_it_builds_on_or_brings():
    for item in shipped_library().strategies():
        assert not set(item.absent) & {*item.present, *item.excludes}, item.name
        assert not set(item.present) & set(item.excludes), item.name


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'absent = ["coalesed"]',
            r"absent of 'x' names 'coalesed', which is unknown; did you mean 'coalesced'\?",
        ),
        ('requires = ["rows > sms"]', r"requires of 'x' names 'rows > sms'.*did you mean 'rows >= sms'\?"),
        (
            'present = ["zzz"]',
            r"present of 'x' names 'zzz', which is unknown; there are 'coalesced', 'vectors-128'",
        ),
        ('stage = "later"', r"entry 'x' lacks or has a wrong value: 'later'"),
        ('effects = { barriers = "sideways" }', r"entry 'x' lacks or has a wrong value: 'sideways'"),
    ],
)
def test_a_wrong_value_of_a_strategy_is_named_with_the_nearest(tmp_path, line, said):
    (tmp_path / "strategies.toml").write_text(f'[[strategy]]\nname = "x"\nstatement = "y"\n{line}\n')
    with pytest.raises(ConfigurationError, match=said):
        PromptLibrary(tmp_path).strategies()


def test_strategies_that_do_not_parse_or_lack_words_are_one_sentence(tmp_path):
    (tmp_path / "strategies.toml").write_text("[[strategy]\n")
    with pytest.raises(ConfigurationError, match=r"strategies.toml does not parse"):
        PromptLibrary(tmp_path).strategies()
    (tmp_path / "strategies.toml").write_text('[[strategy]]\nname = "x"\n')
    with pytest.raises(ConfigurationError, match=r"entry 'x' lacks or has a wrong value: 'statement'"):
        PromptLibrary(tmp_path).strategies()


def test_a_persons_own_strategies_stand_for_the_shipped_ones(tmp_path):
    (tmp_path / "strategies.toml").write_text('[[strategy]]\nname = "mine"\nstatement = "Do\\n  this."\n')
    (found,) = PromptLibrary(own=tmp_path).strategies()
    assert (found.name, found.statement) == ("mine", "Do this.")


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(ConfigurationError, match=r"cannot read .*nothing.txt: No such file"):
        PromptLibrary(tmp_path).text("nothing.txt")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigurationError, match=r"latin.txt is not UTF-8 at byte 3: save it as UTF-8"):
        PromptLibrary(tmp_path).text("latin.txt")


def test_a_template_that_does_not_parse_is_named_with_its_line(tmp_path):
    (tmp_path / "x.md.jinja").write_text("a\n{% if %}\n")
    with pytest.raises(ConfigurationError, match=r"prompt template x.md.jinja, line 2: "):
        PromptLibrary(tmp_path).render("x")


def test_a_hidden_file_in_a_persons_folder_is_no_template(tmp_path):
    (tmp_path / ".DS_Store").write_bytes(b"\0")
    library = PromptLibrary(own=tmp_path)
    assert library.own_files == ()
    assert library.own_digest == ""
