"""The offline author's bilinear interpolation, against PyTorch on the simulator."""

import pytest

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
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_every_revision_is_right(offline_simulator, name):
    value, shape, dtype = INTERPOLATIONS[name]
    answer = offline_simulator.ask(name, SOURCE.format(value=value, shape=shape, dtype=dtype))
    verdicts = [entry["verdict"] for entry in answer.get("revisions", [])]
    assert verdicts, answer
    assert set(verdicts) == {"right"}, answer
