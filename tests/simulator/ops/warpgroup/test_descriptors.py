"""Matrix descriptors of wgmma name the places of an operand's elements."""

import numpy as np
import pytest

from cutegen_nb.simulator.ops.warpgroup.descriptors import UnknownDescriptor, decode


def descriptor(start=1024, leading=128, stride=256, code=0, base=0):
    fields = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | code << 62
    return np.array([fields], np.uint64)


def test_rows_of_a_core_matrix_lie_16_bytes_apart_and_the_next_ones_a_stride():
    places = decode(descriptor()).rows(np.arange(16)[None])
    assert places[0, :, 0].tolist() == [1024 + row % 8 * 16 + row // 8 * 256 for row in range(16)]
    assert (places[..., 1] - places[..., 0] == 128).all()


@pytest.mark.parametrize(("code", "span"), [(1, 128), (2, 64), (3, 32)])
def test_a_swizzle_keeps_each_row_in_its_own_span(code, span):
    places = decode(descriptor(code=code, stride=8 * span)).rows(np.arange(8)[None])[0]
    assert ((places - 1024) // span == np.arange(8)[:, None]).all()
    assert len(np.unique(places)) == places.size


def test_what_is_not_known_is_refused():
    with pytest.raises(UnknownDescriptor, match="base offset"):
        decode(descriptor(base=1))
    with pytest.raises(UnknownDescriptor, match="swizzles that differ"):
        decode(np.concatenate([descriptor(code=1), descriptor(code=2)]))
