"""Other sizes are chosen from the problem's literals and the candidate's thresholds."""

from __future__ import annotations

from cutegen_nb.core.problem import Problem, ProblemForm, Rewrite
from cutegen_nb.evaluator.problem.other_sizes import SizeLiteral, extents, rewrites_for, sizes
from cutegen_nb.evaluator.problem.thresholds import Threshold

SOURCE = """
import torch

rows = 64
columns = 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, columns)]
"""
PROBLEM = Problem(name="p", source=SOURCE, form=ProblemForm.KERNELBENCH)
NOW = (Rewrite(line=5, column=10, full=4096, scaled=256),)


def test_extents_are_literals_that_size_an_input():
    found = extents(PROBLEM, NOW, [(64, 256)])
    assert found == [SizeLiteral(full=64, now=64), SizeLiteral(full=4096, now=256)]


def test_rewrites_keep_the_scaled_size_and_set_one_extent():
    changed = rewrites_for(PROBLEM, NOW, {64: 1})
    assert {(item.full, item.scaled) for item in changed} == {(64, 1), (4096, 256)}
    assert rewrites_for(PROBLEM, NOW, {4096: 4096}) == ()


def test_only_the_side_of_the_problems_own_size_decides():
    found = [SizeLiteral(full=64, now=64), SizeLiteral(full=4096, now=256)]
    tried = list(sizes(found, (64 * 4096, 64 * 256), (Threshold(value=1000),)))
    deciding = [item for item in tried if item.decides and not item.nearer and item.control is None]
    assert [item.values for item in deciding] == [{4096: 1024}]
    own_side = list(sizes(found, (64 * 4096, 64 * 256), (Threshold(value=100),)))
    assert not any(item.decides and not item.nearer and item.control is None for item in own_side)
    assert {"256 made 255", "256 made 259", "64 made 1"} <= {item.words for item in own_side}


def test_an_equality_decides_only_where_the_problems_own_size_is_equal():
    found = [SizeLiteral(full=4096, now=256)]
    deciding = {
        value: [
            item.values
            for item in sizes(found, (4096, 256), (Threshold(value=value, is_equality=True),))
            if item.decides and "the source" in item.words
        ]
        for value in (1024, 4096)
    }
    assert deciding[1024] == []
    assert {4096: 4096} in deciding[4096]


def test_elements_cross_a_threshold_by_both_dimensions_of_one_literal():
    square = [SizeLiteral(full=4096, now=256, power=2)]
    size = next(
        item
        for item in sizes(square, (4096**2, 256**2), (Threshold(value=300_000),))
        if "elements" in item.words
    )
    side = size.values[4096]
    assert size.decides
    assert side**2 >= 300_000 > (side - 1) ** 2


def test_one_extent_takes_its_own_length_while_the_others_make_room():
    found = [SizeLiteral(full=4096, now=256), SizeLiteral(full=393_216, now=384)]
    wide, high = [item for item in sizes(found, (4096 * 393_216, 256 * 384), ()) if item.control is not None]
    assert wide.values == {393_216: 98_304, 4096: 4}
    assert wide.control == {4096: 4}
    assert high.values == {4096: 4096, 393_216: 96}
    assert wide.decides
    assert "nearer to the problem's own 393216, and 256 made 4" in wide.words
    assert not [
        item for item in sizes([SizeLiteral(full=64, now=64)], (64, 64), ()) if item.control is not None
    ]


def test_a_size_nearer_to_the_problems_own_keeps_its_alignment():
    nearer = [item for item in sizes([SizeLiteral(full=4095, now=63)], (4095, 63), ()) if item.nearer]
    assert [item.values[4095] for item in nearer] == [127]
    assert all(item.decides for item in nearer)
    assert not [item for item in sizes([SizeLiteral(full=64, now=64)], (64, 64), ()) if item.nearer]


def test_a_large_problem_is_made_small_before_it_goes_off_alignment():
    found = [SizeLiteral(full=4096, now=4096), SizeLiteral(full=393_216, now=393_216)]
    elements = 4096 * 393_216
    (first, *_) = sizes(found, (elements, elements), (), room=1 << 26)
    assert first.words == "393216 made 393215 and 4096 made 128"
    assert first.values == {393_216: 393_215, 4096: 128}
    (first, *_) = sizes(found, (elements, elements), ())
    assert first.values == {393_216: 393_215}
