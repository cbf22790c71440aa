"""PyTorch's work in a forward is recorded with its line; memory that it allocates is poisoned."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.evaluator.numerics.poison import poisoned
from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch, OperationNames
from cutegen_nb.evaluator.observe.library_results import LibraryResults

X = torch.linspace(-1.0, 1.0, 48).reshape(6, 8)


def watched(function, **settings):
    """The watch of one call, as if this file were the candidate's."""
    watch = ForwardWatch(__file__, **settings)
    with watch:
        result = function()
    return watch, result


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: torch.empty(5),
        lambda: torch.empty_like(X),
        lambda: X.new_empty(3, dtype=torch.float16),
        lambda: torch.empty_strided((4, 3), (1, 4)),
    ],
)
def test_new_memory_holds_no_result(allocate):
    watch, found = watched(allocate)
    assert bool(poisoned(found).all())
    assert watch.computed == []
    _, other = watched(allocate, varied=True)
    assert not bool(poisoned(other).any())
    assert bool(torch.isfinite(other).all())


@pytest.mark.parametrize(
    "glue",
    [
        lambda: X.view(-1),
        X.t,
        lambda: X[1:3, ::2],
        lambda: torch.zeros(9).fill_(2.0),
        lambda: X.expand(2, 6, 8),
        lambda: torch.arange(10),
        lambda: X.unbind(0),
    ],
)
def test_views_allocation_and_constants_are_no_work(glue):
    assert watched(glue)[0].computed == []


@pytest.mark.parametrize(
    ("work", "op", "elements", "moves", "family"),
    [
        (lambda: torch.relu(X), "aten.relu.default", 96, False, None),
        (lambda: X @ X.t(), "aten.mm.default", 132, False, LibraryFamily.MATMUL),
        (lambda: torch.sum(X), "aten.sum.default", 49, False, None),
        (lambda: X.add_(0.0), "aten.add_.Tensor", 96, False, None),
        (lambda: X.to(torch.float16), "aten._to_copy.default", 96, True, None),
        (lambda: X.t().contiguous(), "aten.clone.default", 96, True, None),
        (lambda: torch.cat([X, X]), "aten.cat.default", 192, True, None),
        (lambda: torch.nn.functional.pad(X, (0, 32)), "aten.constant_pad_nd.default", 288, True, None),
    ],
    ids=["relu", "product", "sum", "in place", "cast", "copy", "join", "pad"],
)
def test_work_is_recorded_with_its_elements_and_line(work, op, elements, moves, family):
    (found,) = watched(work)[0].computed
    assert (found.op, found.elements, found.only_moves) == (op, elements, moves)
    assert found.size_bytes >= 2 * elements
    assert found.family is family
    assert found.line == work.__code__.co_firstlineno
    assert not found.allowed


def test_a_line_of_another_file_is_none():
    watch = ForwardWatch("/candidate.py")
    with watch:
        torch.relu(X)
    assert watch.computed[0].line == 0


def test_padding_to_the_channels_of_a_tensor_core_is_no_work():
    assert watched(lambda: torch.nn.functional.pad(X, (0, 8)))[0].computed == []


def test_what_the_policy_leaves_to_pytorch_is_marked_and_nothing_else():
    results = LibraryResults((LibraryFamily.MATMUL,), [X])
    watch, _ = watched(lambda: torch.relu(X @ X.t()), library=results)
    assert [(item.op, item.allowed) for item in watch.computed] == [
        ("aten.mm.default", True),
        ("aten.relu.default", False),
    ]
    assert results.used == (LibraryFamily.MATMUL,)


def test_an_operator_that_other_code_replaced_is_work_even_where_it_would_only_copy():
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("flip", lambda x, dims: x * 2, "CPU")
        (found,) = (item for item in watched(lambda: torch.flip(X, [0]))[0].computed if "flip" in item.op)
    assert found.replaced
    assert not found.only_moves
    assert not watched(lambda: torch.flip(X, [0]))[0].computed[0].replaced


@pytest.mark.parametrize(
    ("work", "rearranged", "matmul_only"),
    [
        (lambda: torch.flip(X, [0]), True, False),
        (lambda: X.t().contiguous().to(torch.float64), True, False),
        (lambda: torch.flip(X, [0]) * 2, False, False),
        (lambda: X.view(-1), False, False),
        (lambda: (X @ X.t()).to(torch.float64), False, True),
        (lambda: torch.relu(X @ X.t()), False, False),
    ],
)
def test_a_reference_is_told_that_rearranges_only_or_that_a_policy_covers_whole(
    work, rearranged, matmul_only
):
    names = OperationNames()
    with names:
        work()
    assert names.only_rearranged is rearranged
    assert names.only_library((LibraryFamily.MATMUL,)) is matmul_only
