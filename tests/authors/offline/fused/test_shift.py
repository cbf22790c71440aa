"""Variances of one pass are right where the row's first element lies far from the others."""

import pytest

pytestmark = pytest.mark.slow

SOURCE = """
import torch

def normal(x):
    mean = x.mean({dim}, keepdim=True)
    return (x - mean) * torch.rsqrt(x.var({dim}, keepdim=True, unbiased=False) + 1e-6)

def get_inputs():
    x = torch.randn({shape})
    x.select({dim}, {at}).add_(300.0)
    return [x]
"""


@pytest.mark.parametrize("at", [0, pytest.param(-1, marks=[pytest.mark.long, pytest.mark.sweep])])
@pytest.mark.parametrize(
    ("dim", "shape"), [pytest.param(0, "8192, 8", marks=pytest.mark.long), (1, "8, 8192")]
)
def test_an_outlier_is_not_what_deviations_are_taken_around(offline_simulator, dim, shape, at):
    source = SOURCE.format(dim=dim, shape=shape, at=at).replace("normal", "reference")
    revisions = offline_simulator.ask("normal", source)["revisions"]
    assert any("one-pass" in entry["applied"] for entry in revisions)
    assert [entry["verdict"] for entry in revisions] == ["right"] * len(revisions)
