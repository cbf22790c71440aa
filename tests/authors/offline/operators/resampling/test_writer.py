"""The offline author's interpolation, against PyTorch on the simulator."""

import pytest

from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.errors import Declined

SOURCE = """
import torch
import torch.nn.functional as F

def reference(x):
    return {value}

def get_inputs():
    return [torch.randn({shape}, dtype=torch.{dtype})]
"""
INTERPOLATIONS = {
    "twice as large": ("F.interpolate(x, scale_factor=2, mode='bilinear')", "2, 3, 9, 10", "float32"),
    "corners kept": (
        "F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=True)",
        "2, 3, 9, 10",
        "float32",
    ),
    "smaller, by a factor": (
        "F.interpolate(x, scale_factor=0.7, mode='bilinear')",
        "2, 3, 19, 21",
        "float32",
    ),
    "to a size": ("F.interpolate(x, size=(7, 40), mode='bilinear')", "2, 3, 19, 21", "float32"),
    "to a size, corners kept": (
        "F.interpolate(x, size=(7, 1), mode='bilinear', align_corners=True)",
        "2, 3, 9, 21",
        "float32",
    ),
    "in fp16": ("F.interpolate(x, scale_factor=(1.5, 2), mode='bilinear')", "2, 3, 10, 20", "float16"),
    "in front of a residual": (
        "F.relu(F.interpolate(x, scale_factor=1, mode='bilinear') + x)",
        "2, 3, 10, 20",
        "float32",
    ),
    "of one dimension": ("F.interpolate(x, scale_factor=2, mode='linear')", "2, 3, 37", "float32"),
    "of one dimension, to a size, corners kept": (
        "F.interpolate(x, size=50, mode='linear', align_corners=True)",
        "2, 3, 37",
        "float32",
    ),
    "of one dimension, smaller, with its tail": (
        "F.gelu(F.interpolate(x, scale_factor=0.6, mode='linear') * 2)",
        "2, 3, 140",
        "bfloat16",
    ),
    "of a volume": ("F.interpolate(x, scale_factor=2, mode='trilinear')", "2, 3, 3, 4, 17", "float32"),
    "of a volume, to a size, corners kept": (
        "F.interpolate(x, size=(4, 7, 9), mode='trilinear', align_corners=True)",
        "2, 3, 5, 4, 17",
        "float32",
    ),
    "of a volume, in front of a residual": (
        "F.relu(F.interpolate(x, scale_factor=1, mode='trilinear') + x)",
        "2, 3, 3, 4, 10",
        "float16",
    ),
    "bicubic": ("F.interpolate(x, scale_factor=2, mode='bicubic')", "2, 3, 9, 10", "float32"),
    "bicubic, corners kept": (
        "F.interpolate(x, size=(20, 33), mode='bicubic', align_corners=True)",
        "2, 3, 9, 10",
        "float32",
    ),
    "bicubic, smaller": (
        "F.interpolate(x, scale_factor=(0.7, 0.4), mode='bicubic')",
        "2, 3, 19, 41",
        "float32",
    ),
    "bicubic, of one row": ("F.interpolate(x, size=(3, 9), mode='bicubic')", "2, 3, 1, 21", "float16"),
    "exactly nearest": ("F.interpolate(x, scale_factor=1.5, mode='nearest-exact')", "2, 3, 8, 10", "float32"),
    "exactly nearest, to a size": (
        "F.interpolate(x, size=(5, 33), mode='nearest-exact')",
        "2, 3, 8, 10",
        "float16",
    ),
}


@pytest.mark.slow
@pytest.mark.every(test=24, long=3)
@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_every_revision_is_right(offline_simulator, name):
    value, shape, dtype = INTERPOLATIONS[name]
    answer = offline_simulator.ask(name, SOURCE.format(value=value, shape=shape, dtype=dtype))
    verdicts = [entry["verdict"] for entry in answer.get("revisions", [])]
    assert verdicts, answer
    assert set(verdicts) == {"right"}, answer


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_is_declined_in_a_sentence(traced, mode):
    value = f"functional.interpolate(x, scale_factor=0.5, mode='{mode}', antialias=True)"
    with pytest.raises(Declined, match="antialias=True"):
        OperatorsWriter().menu(traced(value, "torch.randn(2, 3, 16, 16)"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "inputs"),
    [
        ("functional.interpolate(x, scale_factor=2, mode='bilinear')", ["torch.randn(2, 3, 16, 16)"]),
        (
            "functional.grid_sample(x, y, align_corners=False)",
            ["torch.randn(2, 3, 16, 16)", "torch.rand(2, 16, 16, 2)"],
        ),
    ],
)
def test_loads_of_one_elements_neighbours_do_not_pass_for_the_step(traced, value, inputs):
    (strategy,) = OperatorsWriter().menu(traced(value, *inputs))
    assert strategy.absent == ()
