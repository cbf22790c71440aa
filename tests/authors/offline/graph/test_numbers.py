"""Numbers that depend on the problem's size, in the offline author's kernels on the simulator."""

import pytest

from cutegen_nb.authors.offline.graph.reading import read
from cutegen_nb.core.errors import Declined

SOURCE = """
import math
import torch

def reference(x):
    return {value}

def get_inputs():
    return [torch.randn(512, 4096)]
"""
NUMBERS = {
    "a share of the width": "torch.sin(x * (-9.21 / x.shape[-1]))",
    "the root of the width": "torch.relu(x) / math.sqrt(x.shape[-1])",
    "a number added": "x + 1 / math.sqrt(x.shape[0])",
    "no number": "torch.where(x > 2, float('nan'), x)",
}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", NUMBERS)
def test_the_kernel_is_right_at_another_size(offline_simulator, name):
    answer = offline_simulator.ask(name, SOURCE.format(value=NUMBERS[name]), steps=[0])
    assert [entry["verdict"] for entry in answer["revisions"]] == ["right"]


@pytest.mark.slow
def test_a_number_that_is_not_recognised_is_declined(traced):
    with pytest.raises(Declined, match="in a way that is not recognised"):
        read(traced("x + x.shape[1] ** 0.3", "torch.randn(512, 4096)"))
