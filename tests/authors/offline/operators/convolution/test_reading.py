"""A convolution's numbers as attributes."""

from cutegen_nb.authors.offline.operators.convolution.reading import Convolution
from cutegen_nb.authors.offline.operators.convolution.writer import ConvolutionWriter
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


def matched(module, inputs, cast=""):
    graph = trace_facts(problem(module, inputs, cast)).full.graph
    return ConvolutionWriter().matches(graph)


def test_a_convolution_has_its_numbers_as_attributes():
    (match,) = matched(
        "ConvTranspose2d(8, 12, 3, (2, 3), 1, (1, 2), groups=4, bias=False)", "torch.randn(2, 8, 6, 7)"
    )
    assert [ref.name for ref in match.operands] == ["x", "p_conv_weight"]
    assert match.attributes == Convolution(
        stride=(2, 3), padding=(1, 1), dilation=(1, 1), output_padding=(1, 2), transposed=True, groups=4
    )


def test_depthwise_convolutions_are_left_to_others():
    assert not matched("Conv2d(6, 6, 3, groups=6)", "torch.randn(2, 6, 9, 9)")
    assert matched("Conv2d(6, 12, 3, groups=6)", "torch.randn(2, 6, 9, 9)")
    assert not matched("Conv2d(6, 8, 3)", "torch.randn(2, 6, 9, 9)", ".double()")
