"""Fragments of matrices in the registers of a warp (PTX ISA, "Warp Level Matrix Instructions").

All fragments of 8- or 16-row tiles follow one layout. Thread ``lane`` has group ``g = lane // 4`` and place
``t = lane % 4``; a register packs ``p`` elements.

- A of 16 rows: register ``r`` holds row ``g + 8 × (r mod 2)`` and columns ``4p × (r div 2) + t × p …``.
- A of 8 rows: register ``r`` holds row ``g`` and columns ``4p × r + t × p …``.
- B: register ``r`` holds column ``g`` and rows ``4p × r + t × p …``.
- C and D: each register pair holds row ``g + 8 × pair`` and columns ``2t, 2t + 1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator.numbers.formats import U16, half_to_single
from cutegen_nb.simulator.numbers.values import F32, F64, U32, U64, Array
from cutegen_nb.simulator.ptx.faults import SimulatorFault, place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask

GROUPS, PLACES = 8, 4
"""Groups of a warp, and threads of a group."""
_HALF_INFINITY = np.uint16(0x7C00)
"""float16 infinity, which is also the mask of the exponent."""
_WORD_BITS = 32
"""Bits of a register; a wider element has a register of its own."""


class PartialWarp(SimulatorFault):
    """A matrix instruction that only some threads of a warp execute."""

    kind = "partial-warp"
    verdict = Verdict.CRASHED


def require_whole_warps(lanes: Batch, mask: Mask | None, instruction: Instruction) -> None:
    """Check that every warp executes the instruction with all of its 32 threads or not at all.

    Raises:
        PartialWarp: one does not; the PTX ISA leaves open what happens then.
    """
    # Bits + 1 is at most 1 only for no thread (0) and for all 32 (wraps around to 0).
    if mask is None:
        if lanes.threads % WARP == 0:
            return
        bits: Array = np.full((1, lanes.warps_per_cta), 0xFFFFFFFF, np.uint32)
        bits[0, -1] = (1 << lanes.threads % WARP) - 1
    else:
        bits = mask.bits()
        if (bits + np.uint32(1) <= 1).all():
            return
    cta, warp = (int(one) for one in np.argwhere((bits + np.uint32(1)) > 1)[0])
    active = int(bits[cta, warp])
    first = (active & -active).bit_length() - 1
    thread, block = lanes.place_of(cta * lanes.threads + warp * WARP + first)
    raise PartialWarp(
        f"Warp {warp} of CTA {block} executes {instruction.name} ({place(instruction)}) with "
        f"{active.bit_count()} of its 32 threads (mask {active:#010x}); the instruction needs all of them, "
        "and its result is undefined otherwise. Move it out of the branch, or launch whole warps.",
        instruction, thread=thread, cta=block,
    )  # fmt: skip


# -- elements ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """Element type of A and B."""

    name: str
    """Type name in PTX."""
    bits: int
    """Bits of one element."""
    decode: Callable[[Array], Array]
    """Function from words to values along the last axis, exact in float32 or float64."""

    @property
    def packed(self) -> int:
        """Elements that a register packs."""
        return max(1, _WORD_BITS // self.bits)

    @property
    def word(self) -> np.dtype[Any]:
        """Unsigned dtype of a register."""
        return U64 if self.bits > _WORD_BITS else U32


def half(words: Array) -> Array:
    """Widen float16 pairs to float32 by shifts and one product; infinities and NaN take the table."""
    bits = words.view(U16)
    if bits.size and ((bits & _HALF_INFINITY) == _HALF_INFINITY).any():
        special: Array = half_to_single(bits)
        return special
    wide = bits.view(np.int16).astype(np.int32)
    # Exponent and fraction move to their places in float32; the mask clears the copies of the sign between.
    # Multiplying by 2**(127 - 15) corrects the bias of the exponent, of subnormals too.
    np.left_shift(wide, 13, out=wide)
    np.bitwise_and(wide, np.int32(-0x70000001), out=wide)
    numbers: Array = wide.view(F32)
    return np.multiply(numbers, np.float32(2.0**112), out=numbers)


def _bfloat(words: Array) -> Array:
    return (words.view(U16).astype(U32) << np.uint32(16)).view(F32)


def _tf32(words: Array) -> Array:
    """Values of tf32 words; the hardware ignores the low 13 bits."""
    return (words & np.uint32(0xFFFFE000)).view(F32)


def _nibbles(words: Array, *, signed: bool) -> Array:
    # Each nibble in the upper half of a byte, the low one first; the shift back extends the sign.
    octets = words.view(np.uint8)
    pairs = np.stack((octets << np.uint8(4), octets & np.uint8(0xF0)), axis=-1)
    shifted = pairs.view(np.int8) >> np.int8(4) if signed else pairs >> np.uint8(4)
    return shifted.reshape(*octets.shape[:-1], -1).astype(F32)


def _bits(words: Array) -> Array:
    # The lowest bit of a register is the first element along K.
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(F32)


def _eight_bit_table(mantissa: int, *, finite: bool) -> Array:
    """Values of all codes of an 8-bit float with ``mantissa`` fraction bits, as float32.

    A ``finite`` format has no infinities, and NaN only where all bits but the sign are one.
    """
    codes = np.arange(256)
    exponent, fraction = (codes & 0x7F) >> mantissa, codes & ((1 << mantissa) - 1)
    bias = (1 << (6 - mantissa)) - 1
    # Normal: 1.f × 2**(e - bias); subnormal (e = 0): 0.f × 2**(1 - bias).
    scaled = np.where(exponent == 0, fraction, fraction + (1 << mantissa)).astype(np.float64)
    numbers = scaled * 2.0 ** (np.maximum(exponent, 1) - bias - mantissa)
    if finite:
        numbers = np.where((codes & 0x7F) == 0x7F, np.nan, numbers)  # noqa: PLR2004 - all ones
    else:
        full = exponent == (1 << (7 - mantissa)) - 1
        numbers = np.where(full, np.where(fraction == 0, np.inf, np.nan), numbers)
    return np.where(codes >= 128, -numbers, numbers).astype(F32)  # noqa: PLR2004 - the sign bit


_E4M3: Array = _eight_bit_table(3, finite=True)
_E5M2: Array = _eight_bit_table(2, finite=False)

ELEMENTS: dict[str, Element] = {
    one.name: one
    for one in (
        Element(name="f16", bits=16, decode=half),
        Element(name="bf16", bits=16, decode=_bfloat),
        Element(name="tf32", bits=32, decode=_tf32),
        Element(name="f64", bits=64, decode=lambda words: words.view(F64)),
        Element(name="e4m3", bits=8, decode=lambda words: _E4M3[words.view(np.uint8)]),
        Element(name="e5m2", bits=8, decode=lambda words: _E5M2[words.view(np.uint8)]),
        Element(name="s8", bits=8, decode=lambda words: words.view(np.int8).astype(F32)),
        Element(name="u8", bits=8, decode=lambda words: words.view(np.uint8).astype(F32)),
        Element(name="s4", bits=4, decode=lambda words: _nibbles(words, signed=True)),
        Element(name="u4", bits=4, decode=lambda words: _nibbles(words, signed=False)),
        Element(name="b1", bits=1, decode=_bits),
    )
}
"""Element types of A and B by PTX name."""
INTEGERS = frozenset({"s8", "u8", "s4", "u4", "b1"})
"""Types whose sums are exact in float32: at most 64 products below 2**16, or 256 bits, stay below 2**24."""


# -- warps ---------------------------------------------------------------------------------------------------
def chosen_warps(lanes: Batch, mask: Mask | None) -> Array | None:
    """Numbers of the active warps, or None to compute all of the batch.

    Choosing costs a gather, so it is done only where at most half of the warps are active.
    """
    if mask is None or 2 * mask.warps > lanes.warps:
        return None
    bits = np.broadcast_to(mask.bits(), (lanes.ctas, lanes.warps_per_cta))
    return np.flatnonzero(bits)


def words_of(lanes: Batch, slot: int, dtype: np.dtype[Any], warps: Array | None) -> Array:
    """Register as an array (ctas, warps of a CTA, 8 groups, 4 places), or (chosen warps, 8, 4)."""
    whole = lanes.full(lanes.registers[slot], dtype)
    if warps is None:
        return whole.reshape(lanes.ctas, lanes.warps_per_cta, GROUPS, PLACES)
    return whole.reshape(-1, GROUPS, PLACES)[warps]


def leading(lanes: Batch, warps: Array | None) -> tuple[int, ...]:
    """Lengths of the first axes of :func:`words_of`."""
    return (lanes.ctas, lanes.warps_per_cta) if warps is None else (len(warps),)


def by_lane(lanes: Batch, array: Array, warps: Array | None) -> Array:
    """Reshape (warps, 8, 4) to (ctas, threads); zero in warps that were not computed."""
    if warps is None:
        return array.reshape(lanes.ctas, lanes.threads)
    spread = np.zeros((lanes.warps, WARP), array.dtype)
    spread[warps] = array.reshape(-1, WARP)
    return spread.reshape(lanes.ctas, lanes.threads)


def gathered(
    lanes: Batch, fragments: Sequence[Sequence[int]], rows: int, element: Element, warps: Array | None
) -> Array:
    """Unpack fragments of A (``rows`` 8 or 16), values along K.

    Args:
        lanes: the batch.
        fragments: slots of the registers of each fragment.
        rows: rows of a fragment.
        element: type of its elements.
        warps: warps to compute; None for all.

    Returns:
        float array (warps, fragments × rows, K).
    """
    words = row_words(lanes, fragments, rows, element, warps)
    return element.decode(words).reshape(len(words), len(fragments) * rows, -1)


def row_words(
    lanes: Batch, fragments: Sequence[Sequence[int]], rows: int, element: Element, warps: Array | None
) -> Array:
    """Registers of fragments of A, with the arguments of :func:`gathered`.

    Returns:
        words (warps, fragments, row halves, groups, registers along K, places).
    """
    halves = rows // GROUPS
    lead = leading(lanes, warps)
    raw = np.empty((*lead, len(fragments), halves, GROUPS, len(fragments[0]) // halves, PLACES), element.word)
    for index, fragment in enumerate(fragments):
        for register, slot in enumerate(fragment):
            # Registers alternate between the upper and the lower 8 rows, then go on along K.
            step, upper = divmod(register, halves)
            raw[..., index, upper, :, step, :] = words_of(lanes, slot, element.word, warps)
    return raw.reshape(math.prod(lead), *raw.shape[len(lead) :])


def column_words(
    lanes: Batch, fragments: Sequence[Sequence[int]], element: Element, warps: Array | None
) -> Array:
    """Registers of fragments of B, with the arguments of :func:`gathered`.

    The columns are in the order (place, fragment, parity), so that a row of a product has those of a thread
    side by side.

    Returns:
        words (warps, places of a column, fragments, parities of a column, registers along K, places).
    """
    lead = leading(lanes, warps)
    raw = np.empty((*lead, PLACES, len(fragments), 2, len(fragments[0]), PLACES), element.word)
    for index, fragment in enumerate(fragments):
        for step, slot in enumerate(fragment):
            words = words_of(lanes, slot, element.word, warps)
            raw[..., index, :, step, :] = words.reshape(*lead, PLACES, 2, PLACES)
    return raw.reshape(math.prod(lead), *raw.shape[len(lead) :])
