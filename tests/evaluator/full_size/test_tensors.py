"""Virtual tensors of any shape and strides."""

import pytest
import torch

from cutegen_nb.evaluator.full_size import tensors

LARGE = (1 << 20, 1 << 18)


def test_a_terabyte_of_zeros_can_be_written():
    made = tensors.zeros(LARGE, (1 << 18, 1), torch.float32)
    made[-1, -1] = 3.0
    assert (float(made[0, 0]), float(made[-1, -1])) == (0.0, 3.0)
    assert tensors.is_virtual(made)
    assert not tensors.is_virtual(torch.zeros(4))


def test_values_repeat_through_the_storage_whatever_the_strides():
    values = torch.arange(1 << 16, dtype=torch.float32)
    made = tensors.repeating((1 << 18, 1 << 12), (1, 1 << 18), torch.float32, values)
    assert made[:5, 3].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert float(made[70_000, 0]) == 70_000 - (1 << 16)


@pytest.mark.parametrize("size", [1 << 24, 100])
def test_contents_are_replaced_and_copied(size):
    made = tensors.zeros((size,), (1,), torch.int32)
    tensors.refill(made, torch.tensor([1, 2]))
    assert made[:4].tolist() == tensors.alike(made, (1,))[:4].tolist() == [1, 2, 1, 2]
    with pytest.raises(ValueError, match="not virtual"):
        tensors.refill(torch.zeros(4), torch.ones(1))


def test_an_empty_tensor_has_no_elements():
    assert tensors.zeros((0, 1 << 40), (1 << 40, 1), torch.float16).numel() == 0


def test_drawn_integers_are_indices_of_any_dimension():
    drawn = tensors.drawn(torch.int64, torch.Generator().manual_seed(1))
    assert set(drawn.tolist()) == {0, 1}
