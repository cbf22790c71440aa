"""Bytes of a box in memory."""

import numpy as np
import pytest

from cutegen_nb.simulator.ops.bulk.regions import boxes
from cutegen_nb.simulator.state.tensor_map import TensorMap


def described_by_hand(code, extents, stride, box, *, more=0):
    """Tensor map of two dimensions, from its words."""
    words = np.zeros(32, np.uint32)
    words[2] = 0x2 | 1 << 4 | code << 7 | more
    words[3], words[8], words[9] = stride // 16, extents[0] - 1, extents[1] - 1
    words[13], words[14] = (box[0] - 1) << 24, box[1] - 1
    return TensorMap.read(words.tobytes())


@pytest.mark.parametrize(("code", "words"), [(12, 2), (13, 3)])
def test_elements_of_4_and_6_bits_are_padded_to_bytes(code, words):
    """16 elements are 2 or 3 words in global memory and 16 bytes in shared memory."""
    padded = described_by_hand(code, (64, 4), 4 * words * 4, (32, 2))
    assert (padded.padded_words, padded.box_bytes) == (words, 64)
    region = boxes(np.array([0]), padded, np.array([[32, 3]]), np.array([1024]), by_element=False)
    groups = np.array([[2, 3, 2, 3], [3, 3, 4, 4]])  # group along dimension 0, and index along 1
    start = groups[1] * 16 * words + groups[0] * 4 * words
    assert region.remote.reshape(4, words).tolist() == [[one + 4 * i for i in range(words)] for one in start]
    assert region.inside.reshape(4, words).all(axis=1).tolist() == [True, True, False, False]
    assert region.local.reshape(4, words)[:, 0].tolist() == [1024, 1040, 1056, 1072]
    assert region.bytes_each == 4 * 4 * words
