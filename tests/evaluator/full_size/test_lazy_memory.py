"""PyTorch under a mode that allocates large tensors lazily and computes on small ones only."""

import pytest
import torch

from cutegen_nb.evaluator.full_size import tensors
from cutegen_nb.evaluator.full_size.lazy_memory import ComputedByTorch, LazyMemory

ELEMENTS = 1 << 36  # 256 GiB of float32


@pytest.mark.parametrize(
    "made",
    [
        lambda: torch.empty(ELEMENTS),
        lambda: torch.zeros(ELEMENTS),
        lambda: torch.randn(ELEMENTS),
        lambda: torch.full((ELEMENTS,), 2.0),
    ],
)
def test_a_tensor_larger_than_the_machine_is_virtual(made):
    with LazyMemory():
        virtual = tensors.is_virtual(made())
    assert virtual


def test_views_and_fills_of_it_are_no_computation():
    with LazyMemory() as mode:
        x = torch.zeros(ELEMENTS)
        x.fill_(3.0)
        y = x.view(1 << 18, 1 << 18).t()
        clone = x.clone()
    assert (float(y[5, 7]), float(clone[9])) == (3.0, 3.0)
    assert mode.refused == ""


def test_a_contiguous_copy_of_a_view_is_row_major():
    with LazyMemory():
        y = torch.zeros(ELEMENTS).view(1 << 18, 1 << 18).t()
        strides = [made.stride() for made in (y.clone(), y.contiguous(), y.contiguous().view(-1))]
    assert strides == [(1, 1 << 18), (1 << 18, 1), (1,)]


def test_an_operation_on_all_of_it_is_refused_in_a_sentence_that_stays():
    with LazyMemory() as mode:
        x = torch.zeros(ELEMENTS)
        with pytest.raises(ComputedByTorch, match=r"aten.relu.* on 256.00 GiB"):
            torch.relu(x)
    assert "only kernels are sampled" in mode.refused


def test_small_tensors_are_computed_as_ever():
    with LazyMemory():
        assert torch.relu(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
        assert torch.empty(4).tolist() == [0.0] * 4
