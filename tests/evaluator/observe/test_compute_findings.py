"""Shares of PyTorch's work in a forward that decide, are a flag or are glue, and the next step that is told."""

from __future__ import annotations

import pytest

from cutegen_nb.core.finding import Severity
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.evaluator.observe.compute_findings import judge_compute
from cutegen_nb.evaluator.observe.dispatch_watch import TorchCompute

DECIDES, FLAG = Severity.DECIDES, Severity.FLAG


def op(name, elements, line=3, **more):
    return TorchCompute(op=f"aten.{name}.default", elements=elements, line=line, **more)


def moved(name, elements, line=3):
    return op(name, elements, line, only_moves=True)


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        ([], []),
        ([op("relu", 62)], []),
        ([op("relu", 63)], [("torch-compute", DECIDES, 3)]),
        ([op("relu", 21)] * 3, [("torch-compute", DECIDES, 3)]),
        ([op("add", 60, line) for line in (3, 4)], []),
        ([op("add", 60, line) for line in (3, 4, 5)], [("torch-compute", DECIDES, 3)]),
        ([moved("cat", 500)], [("torch-movement", FLAG, 3)]),
        ([moved("cat", 60, line) for line in range(9)], []),
        ([moved("cat", 500), op("relu", 500, 7)], [("torch-movement", FLAG, 3), ("torch-compute", DECIDES, 7)]),
        ([op("mm", 900, allowed=True, family=LibraryFamily.MATMUL)], []),
    ],
    ids=[
        "nothing", "below a sixteenth", "a sixteenth", "in pieces", "glue", "glue that adds up", "a copy",
        "small copies", "a copy and work", "left to PyTorch",
    ],
)  # fmt: skip
def test_a_share_of_a_thousand_elements_decides_by_what_it_is(computed, expected):
    found = judge_compute(computed, 1000)
    assert [(item.kind, item.severity, item.line) for item in found] == expected


def test_a_copy_decides_where_the_problem_is_to_rearrange():
    (found,) = judge_compute([moved("flip", 500)], 1000, to_rearrange=True)
    assert (found.kind, found.severity) == ("torch-compute", DECIDES)


PRODUCT = {"family": LibraryFamily.MATMUL}


@pytest.mark.parametrize(
    ("computed", "message"),
    [
        (
            [op("relu", 500)],
            ("PyTorch's aten.relu.default ran inside forward in line 3 on 500 elements (50% of the problem's "
            "inputs and outputs); write it in a kernel."),
        ),
        (
            [op("mm", 250, 0, **PRODUCT)] * 2,
            ("PyTorch's aten.mm.default ran inside forward in 2 calls on 500 elements (50% of the problem's inputs "
            "and outputs); write it in a kernel, or allow PyTorch's with --library matmul."),
        ),
        (
            [op("mm", 500, replaced=True, **PRODUCT)],
            ("PyTorch's aten.mm.default ran inside forward in line 3 on 500 elements (50% of the problem's inputs "
            "and outputs); write it in a kernel."),
        ),
        (
            [moved("cat", 500)],
            ("PyTorch's aten.cat.default ran inside forward in line 3 on 500 elements (50% of the problem's inputs "
            "and outputs); its time counts, and a kernel could do without."),
        ),
        (
            [op("mm", 60, 1, **PRODUCT), op("convolution", 60, 2, family=LibraryFamily.CONV), op("mm", 60, 4, **PRODUCT)],
            ("3 small operations of PyTorch's (aten.convolution.default, aten.mm.default) ran inside forward on 18% "
            "as many elements as the problem's inputs and outputs have; write it in a kernel, or allow PyTorch's "
            "with --library conv,matmul."),
        ),
    ],
)  # fmt: skip
def test_the_message_names_operator_line_share_and_next_step(computed, message):
    assert judge_compute(computed, 1000)[0].message == message
