from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.problem import Rewrite
from cutegen_nb.evaluator.problem.scaling import SizeBudget, TrialSize, choose_scale, literals_of, shrunk

SOURCE = """import torch
torch.manual_seed(1234)
M, N = 4096, 2048 * 2
dim = 1
class Model(torch.nn.Module):
    size = 1000
    def forward(self, x, y):
        return x.sum(dim=1) * 500 + y
def get_inputs():
    return [torch.rand(M, N), torch.rand(4096)]
def other():
    return 700
"""


def sizes(source: str, rewrites: tuple[Rewrite, ...]) -> dict[str, int]:
    """Names at the top level and their values once `rewrites` are applied."""
    by_place = {(r.line, r.column): r.scaled for r in rewrites}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and (node.lineno, node.col_offset) in by_place:
            node.value = by_place[node.lineno, node.col_offset]
    tree.body = [item for item in tree.body if isinstance(item, ast.Assign)]
    names: dict[str, int] = {}
    exec(compile(tree, "p", "exec"), names)
    return names


def choose(assignments: str, elements, budget: SizeBudget, allowed=lambda names: True, nodes=1):
    """`choose_scale` for top-level assignments, measured by functions of their names; and its trials."""
    source = f"{assignments}\ndef f(x): return x\nexample_inputs = []\n"
    tried = []

    def size(names):
        return TrialSize(elements=elements(names), flops=0, nodes=nodes, character=())

    def measure(rewrites):
        names = sizes(source, rewrites)
        tried.append(rewrites)
        return size(names) if allowed(names) else None

    rewrites = choose_scale(problem_from_string(source, name="p"), size(sizes(source, ())), measure, budget)
    return sizes(source, rewrites), rewrites, tried


def test_only_literals_outside_functions_and_classes_and_in_input_functions_may_change():
    assert sorted(value for _, _, value in literals_of(SOURCE)) == [2, 2048, 4096, 4096]


@pytest.mark.parametrize(
    ("value", "half"),
    [
        (4096, 2048),
        (4095, 2047),
        (393216, 196608),
        (1000, 504),
        (12, 4),
        (48, 16),
        (16, 8),
        (8, 4),
        (4, 2),
        (2949, 1475),
    ],
)
def test_halving_keeps_alignment_and_oddness(value, half):
    assert shrunk(value, 2) == half


@given(value=st.integers(2, 2**40), floor=st.integers(2, 64))
def test_halving_never_grows_never_passes_the_floor_and_ends(value, floor):
    steps = 0
    while shrunk(value, floor) < value:
        before, value, steps = value, shrunk(value, floor), steps + 1
        assert value >= floor
        assert before % 2 == value % 2 or before <= 16
    assert steps < 60


def test_the_largest_extent_shrinks_first_until_the_budget_holds():
    names, rewrites, _ = choose(
        "rows = 4096\ncols = 393216", lambda n: 2 * n["rows"] * n["cols"], SizeBudget()
    )
    assert 2 * names["rows"] * names["cols"] <= 2**18
    assert 64 <= names["rows"] <= names["cols"] * 4
    assert {r.full for r in rewrites} == {4096, 393216}


def test_equal_literals_stay_equal_and_small_ones_stay():
    names, _, _ = choose("a = 8192 * 2\nb = (8192 * 2,)\nk = 3", lambda n: n["a"] * n["b"][0], SizeBudget())
    assert names["a"] == names["b"][0] < 8192
    assert names["k"] == 3


def test_a_problem_within_the_budget_is_left_alone():
    _, rewrites, tried = choose("n = 4096", lambda n: n["n"], SizeBudget())
    assert (rewrites, tried) == ((), [])


def test_sizes_that_only_fit_together_shrink_together():
    names, _, _ = choose(
        "n = 4096\nm = 8192", lambda n: n["n"] * n["m"], SizeBudget(), allowed=lambda n: n["m"] == 2 * n["n"]
    )
    assert names["m"] == 2 * names["n"]
    assert names["n"] * names["m"] <= 2**18


def test_a_size_that_may_not_change_is_kept_and_the_others_go():
    names, _, _ = choose(
        "n = 1024\nm = 8192", lambda n: n["n"] * n["m"], SizeBudget(), allowed=lambda n: n["n"] == 1024
    )
    assert names["n"] == 1024
    assert names["m"] <= 256


def test_no_rewrites_are_given_where_nothing_helps():
    _, rewrites, tried = choose("n = 4096", lambda n: 2**30, SizeBudget())
    assert rewrites == ()
    assert len(tried) < 10


def test_many_steps_are_measured_as_one():
    names, _, tried = choose("rows = 4096\ncols = 393216", lambda n: n["rows"] * n["cols"], SizeBudget())
    assert (names["rows"], names["cols"]) == (512, 384)  # 13 steps
    assert len(tried) <= 6


def test_no_size_is_measured_twice():
    """The image cannot shrink below 48, whatever else does: each phase finds that out anew."""
    _, _, tried = choose(
        "image = 224\nwidth = 32\nbatch = 10",
        lambda n: n["image"] ** 2 * n["width"] ** 2 * n["batch"],
        SizeBudget(elements=2**16),
        allowed=lambda n: n["image"] >= 48,
    )
    assert len(tried) == len(set(tried)) <= 12


def test_of_sizes_that_are_all_too_large_the_smallest_is_taken():
    names, _, _ = choose("n = 4096\nm = 4096 * 4", lambda n: 2**22 + n["n"] * n["m"], SizeBudget())
    assert names["n"] <= 256
    names, _, _ = choose("n = 4096", lambda n: 2**30 + n["n"], SizeBudget())
    assert names["n"] == 4096, "nothing is gained by a smaller one"


def test_a_network_of_a_thousand_operations_is_given_up_soon():
    _, _, tried = choose(
        "a = 4096\nb = 8192\nc = 1000", lambda n: 2**40, SizeBudget(), allowed=lambda n: False, nodes=1000
    )
    assert len(tried) <= 5


def test_a_search_that_ends_early_takes_a_size_that_fits():
    names, _, tried = choose("a = 4096\nb = 8192", lambda n: n["a"] * n["b"], SizeBudget(), nodes=4000)
    assert names["a"] * names["b"] <= 2**18
    assert len(tried) == 1
