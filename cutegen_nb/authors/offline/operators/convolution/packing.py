"""Packed input of the convolution for Hopper: pixels in a row with their padding, in chunks of channels."""

from __future__ import annotations

import math

from cutegen_nb.authors.offline.operators.convolution.reading import attributes_of
from cutegen_nb.authors.offline.operators.operator import OperatorCall

_MOST_SUMS = 4
"""Most phases of a transposed convolution whose sums fit in a thread's registers together."""
_MOST_SIDES = 8
"""Most phases of a transposed convolution whose outputs fit in shared memory side by side."""
_MOST_BLOCKS = 65535
"""Most CTAs along the second and third dimension of a grid: images, and chunks of channels."""
MOST_PIXELS = 2**28
"""Most packed pixels: the offset of a pixel in a chunk of 8 channels is counted in 32 bits."""


def folded_taps(call: OperatorCall) -> int:
    """Count the taps along the last dimension that are packed as channels; 0 where that does not pay.

    The depth of an MMA is 16, so that each tap's channels are a multiple of 16.
    """
    inputs = call.operands[0].shape[1].full // attributes_of(call).groups
    taps = call.operands[1].shape[-1]
    apart, together = taps.full * _sixteens(inputs), _sixteens(taps.full * inputs)
    pays = not attributes_of(call).transposed and 3 * together <= 2 * apart
    return taps.full if pays and taps.full == taps.scaled else 0


def sides_of(call: OperatorCall) -> tuple[int, tuple[int, ...]]:
    """Count the phases along the last dimension, whose outputs alternate, that one tile computes.

    Returned beside their number are those that taps reach; the others' sums are zero.
    """
    numbers, taps = attributes_of(call), call.operands[1].shape[-1]
    stride, padding, dilation = numbers.stride[-1], numbers.padding[-1], numbers.dilation[-1]
    most = max(taps.full, taps.scaled)
    reached = tuple(sorted({(t * dilation - padding) % stride for t in range(most)}))
    if numbers.transposed and stride <= _MOST_SIDES and len(reached) <= _MOST_SUMS:
        return stride, reached
    return 1, (0,)


def fits_shifted(call: OperatorCall) -> bool:
    """Return whether 32 bits count the packed pixels, and a grid has room for all images and channels."""
    numbers, x = attributes_of(call), call.operands[0].shape
    pixels = x[0].full * math.prod(_places(call, d) for d in range(len(numbers.stride)))
    channels = _sixteens(x[1].full // numbers.groups * max(folded_taps(call), 1)) * numbers.groups
    return pixels < MOST_PIXELS and max(x[0].full, channels // 8) <= _MOST_BLOCKS


def _places(call: OperatorCall, d: int) -> int:
    """Places of the packed input along a spatial dimension, padding included, at most."""
    numbers = attributes_of(call)
    reach = numbers.dilation[d] * (call.operands[1].shape[2 + d].full - 1)
    if numbers.transposed:
        return call.operands[0].shape[2 + d].full + 2 * (reach // numbers.stride[d] + 1)
    return call.operands[0].shape[2 + d].full + 2 * numbers.padding[d] + numbers.stride[d]


def _sixteens(channels: int) -> int:
    return -(-channels // 16) * 16
