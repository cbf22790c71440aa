"""Extents of an operator's result as expressions of its operands' shapes, evaluated beside PyTorch."""

from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.authors.offline.operators.cut import cut
from cutegen_nb.authors.offline.operators.product import ProductOperator
from cutegen_nb.authors.offline.operators.registry import OPERATOR_WRITERS


@pytest.mark.parametrize(
    ("value", "inputs"),
    [
        (
            "functional.conv2d(x, y, stride=(2, 3), padding=1, dilation=(1, 2))",
            [(2, 4, 17, 19), (6, 4, 3, 3)],
        ),
        (
            "functional.conv_transpose2d(x, y, stride=2, padding=1, output_padding=1)",
            [(2, 4, 7, 9), (4, 6, 3, 3)],
        ),
        ("functional.max_pool2d(x, 3, 2, 1)", [(2, 4, 17, 19)]),
        ("functional.avg_pool2d(x, 5)", [(2, 4, 17, 19)]),
        ("torch.cumsum(x, 1)", [(8, 33)]),
        ("x @ y", [(8, 33), (33, 5)]),
    ],
)
def test_they_are_those_of_the_result(traced, value, inputs):
    facts = traced(value, *(f"torch.rand{shape}" for shape in inputs))
    (part,) = cut(facts, (*OPERATOR_WRITERS, ProductOperator()), ()).parts.values()
    tensors = [SimpleNamespace(shape=shape) for shape in inputs]
    places = [text.format(*(f"t[{at}]" for at in range(len(tensors)))) for text in part.extents]
    found = tuple(eval(text, {"t": tensors}) for text in places)
    scope = {"torch": torch, "functional": torch.nn.functional}
    scope |= {name: torch.rand(shape) for name, shape in zip("xy", inputs, strict=False)}
    assert found == tuple(eval(value, scope).shape)


def test_a_pooling_that_rounds_up_is_left_to_the_function_itself(traced):
    facts = traced("functional.max_pool2d(x, 3, 2, ceil_mode=True)", "torch.rand(2, 4, 17, 19)")
    (part,) = cut(facts, OPERATOR_WRITERS, ()).parts.values()
    assert part.extents is None
