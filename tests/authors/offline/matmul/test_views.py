"""Views of a tensor as arrangements of its memory, against PyTorch's own."""

import pytest
import torch

from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.matmul.sizes import sizes_of
from cutegen_nb.authors.offline.matmul.views import arrangement_of, moved
from cutegen_nb.core.errors import Declined

SHAPE = (Extent(4, 2), Extent(6, 3), Extent(5, 5))
SIZES = sizes_of("A", SHAPE)


def evaluated(arrangement):
    a = torch.arange(4 * 6 * 5).view(4, 6, 5)
    return a, eval(arrangement.text("A", SIZES), {"A": a})


@pytest.mark.parametrize(
    ("op", "args", "shape", "view"),
    [
        ("permute", (None, (2, 0, 1)), (SHAPE[2], SHAPE[0], SHAPE[1]), lambda a: a.permute(2, 0, 1)),
        ("transpose", (None, -1, 0), (SHAPE[2], SHAPE[1], SHAPE[0]), lambda a: a.transpose(-1, 0)),
        ("view", (None,), (SHAPE[0] * SHAPE[1], SHAPE[2]), lambda a: a.view(24, 5)),
    ],
)
def test_the_text_gives_the_same_tensor_without_a_copy(op, args, shape, view):
    a, found = evaluated(moved(arrangement_of(SIZES), op, args, shape))
    assert torch.equal(found, view(a))
    assert found.data_ptr() == a.data_ptr()


def test_a_reshape_of_a_transposed_tensor_would_copy():
    turned = arrangement_of(SIZES).permuted((1, 0, 2))
    assert not turned.in_order
    with pytest.raises(Declined, match="transposed tensor"):
        turned.reshaped((SHAPE[1] * SHAPE[0], SHAPE[2]))


def test_another_operation_is_no_view():
    assert moved(arrangement_of(SIZES), "relu", (None,), SHAPE) is None
