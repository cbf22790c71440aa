"""Strategies of convolutions are offered where they fit."""

from cutegen_nb.authors.offline.operators.convolution.strategies import MULTISTAGE, SHIFTED, TENSOR, TILES
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

TEMPLATE = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.{module}{cast}

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [({inputs}){cast}]


def get_init_inputs():
    return []
"""


def problem(module, inputs, cast=""):
    source = TEMPLATE.format(module=module, inputs=inputs, cast=cast)
    return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH)


def menu(module, inputs):
    return [item.name for item in OperatorsWriter().menu(trace_facts(problem(module, inputs)))]


def test_tensor_cores_are_offered_where_an_mma_is_not_mostly_empty():
    assert menu("Conv2d(16, 32, 3)", "torch.randn(2, 16, 9, 9)") == [TILES, SHIFTED, TENSOR, MULTISTAGE]
    assert menu("Conv2d(16, 4, 3)", "torch.randn(2, 16, 9, 9)") == [TILES]
    assert menu("Conv2d(8, 64, 1)", "torch.randn(2, 8, 9, 9)") == [TILES]
