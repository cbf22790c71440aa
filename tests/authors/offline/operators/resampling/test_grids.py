"""The offline author's sampling at a grid's places, against PyTorch on the simulator."""

import pytest

from cutegen_nb.authors.offline.operators.resampling.grids import grid_samplings_in
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.errors import Declined

SOURCE = """
import torch
import torch.nn.functional as F

def reference(x, grid):
    return {value}

def get_inputs():
    grid = torch.rand(2, 7, 9, 2) * {wide} - {wide} / 2
    return [torch.randn({shape}, dtype=torch.{dtype}), grid.to(torch.{dtype})]
"""
SAMPLINGS = {
    "bilinear": ("F.grid_sample(x, grid, align_corners=False)", "2, 11, 6, 5", "float32", 2.4),
    "corners kept": ("F.grid_sample(x, grid, align_corners=True)", "2, 3, 6, 5", "float32", 2.4),
    "far outside": ("F.grid_sample(x, grid, align_corners=False)", "2, 3, 6, 5", "float32", 1e12),
    "the border repeated": (
        "F.grid_sample(x, grid, padding_mode='border', align_corners=False)",
        "2, 3, 6, 5",
        "float32",
        3,
    ),
    "reflected": (
        "F.grid_sample(x, grid, padding_mode='reflection', align_corners=False)",
        "2, 3, 6, 5",
        "float32",
        9,
    ),
    "reflected, of one column, corners kept": (
        "F.grid_sample(x, grid, padding_mode='reflection', align_corners=True)",
        "2, 3, 6, 1",
        "float32",
        9,
    ),
    "nearest": ("F.grid_sample(x, grid, mode='nearest', align_corners=False)", "2, 3, 6, 5", "float32", 2.4),
    "in fp16": ("F.grid_sample(x, grid, align_corners=False)", "2, 9, 6, 5", "float16", 2.4),
    "in front of a scale for each channel": (
        "F.relu(F.grid_sample(x, grid, align_corners=False) * x[0, :, :1, :1])",
        "2, 9, 6, 5",
        "float32",
        2.4,
    ),
}
TENSORS = ("torch.randn(2, 3, 16, 16)", "torch.rand(2, 16, 16, 2)")


@pytest.mark.slow
@pytest.mark.every(test=12, long=2)
@pytest.mark.parametrize("name", SAMPLINGS)
def test_every_revision_is_right(offline_simulator, name):
    value, shape, dtype, wide = SAMPLINGS[name]
    source = SOURCE.format(value=value, shape=shape, dtype=dtype, wide=wide)
    answer = offline_simulator.ask(name, source)
    verdicts = [entry["verdict"] for entry in answer.get("revisions", [])]
    assert len(verdicts) > 1, answer
    assert set(verdicts) == {"right"}, answer


@pytest.mark.slow
def test_mode_padding_and_corners_are_read(traced):
    value = "functional.grid_sample(x, y, 'nearest', 'border', align_corners=True)"
    (match,) = grid_samplings_in(traced(value, *TENSORS).full.graph)
    found = match.attributes
    assert (found.mode, found.padding, found.align_corners) == ("nearest", "border", True)


@pytest.mark.slow
def test_bicubic_sampling_is_declined_in_a_sentence(traced):
    value = "functional.grid_sample(x, y, 'bicubic', align_corners=True)"
    with pytest.raises(Declined, match="mode='bicubic'"):
        OperatorsWriter().menu(traced(value, *TENSORS))
