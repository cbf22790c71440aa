"""Packed input of a convolution for Hopper: which taps become channels, and what 32 bits count."""

import pytest

from cutegen_nb.authors.offline.operators.convolution.packing import fits_shifted, folded_taps, sides_of
from cutegen_nb.authors.offline.operators.convolution.strategies import SHIFTED, TENSOR
from cutegen_nb.authors.offline.operators.convolution.writer import ConvolutionWriter
from cutegen_nb.authors.offline.operators.cut import cut
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

TEMPLATE = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.{module}

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn{shape}]


def get_init_inputs():
    return []
"""


def call_of(module, shape):
    source = TEMPLATE.format(module=module, shape=shape)
    problem = Problem(name="given", source=source, form=ProblemForm.KERNELBENCH)
    (call,) = cut(trace_facts(problem), (ConvolutionWriter(),), ()).calls().values()
    return call


@pytest.mark.parametrize(("module", "shape", "taps"), [
    ("Conv2d(3, 32, 11, stride=4)", (2, 3, 64, 64), 11),
    ("Conv2d(8, 32, 3)", (2, 8, 16, 16), 3),
    ("Conv2d(32, 32, 3, groups=8)", (2, 32, 16, 16), 3),
    ("Conv2d(16, 32, 3)", (2, 16, 16, 16), 0),
    ("Conv2d(24, 32, 3)", (2, 24, 16, 16), 0),
    ("Conv2d(3, 32, (7, 1))", (2, 3, 16, 16), 0),
    ("ConvTranspose2d(3, 32, 3)", (2, 3, 16, 16), 0),
])  # fmt: skip
def test_taps_are_channels_where_channels_alone_leave_an_mma_mostly_empty(module, shape, taps):
    assert folded_taps(call_of(module, shape)) == taps


@pytest.mark.parametrize(("module", "sides"), [
    ("Conv2d(16, 16, 3, stride=2)", (1, (0,))),
    ("ConvTranspose2d(16, 16, 3)", (1, (0,))),
    ("ConvTranspose2d(16, 16, 3, stride=(3, 2))", (2, (0, 1))),
    ("ConvTranspose2d(16, 16, 3, stride=2, padding=1, dilation=2)", (2, (1,))),
    ("ConvTranspose2d(16, 16, 3, stride=5, padding=1, dilation=2)", (5, (1, 3, 4))),
    ("ConvTranspose2d(16, 16, 5, stride=5)", (1, (0,))),
    ("ConvTranspose2d(16, 16, 3, stride=9)", (1, (0,))),
])  # fmt: skip
def test_a_tile_has_the_phases_whose_sums_fit_in_registers(module, sides):
    assert sides_of(call_of(module, (2, 16, 9, 9))) == sides


@pytest.mark.parametrize(("images", "fits"), [(100, True), (160, False)])
def test_more_pixels_than_32_bits_count_are_gathered_on_every_gpu(images, fits):
    call = call_of("Conv2d(3, 8, 3, stride=2)", (images, 3, 1024, 2048))
    names = {item.name: item.architectures for item in ConvolutionWriter().menu(call)}

    assert fits_shifted(call) == (SHIFTED in names) == fits
    assert bool(names[TENSOR]) == fits  # all but Hopper


def test_more_images_than_a_grid_has_room_for_are_not_shifted():
    assert not fits_shifted(call_of("Conv1d(16, 16, 3)", (70000, 16, 8)))
