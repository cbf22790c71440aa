"""Input values: edges first, combined with one another, then random bits.

Random bits come from PCG64's raw stream, whose values NumPy keeps the same in every release, so that a recording made
with one release fits the inputs made with another.  :func:`digest` tells if they differ all the same.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np

from suite.cases import THREADS, WIDTH_BYTES, Case, Operand, block_of

Array = Any

_F32 = (
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x80000001,
    0x007FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F000000, 0x3FC00000, 0x3F800001, 0x3F7FFFFF,
    0x807FFFFF, 0xBF000000, 0x40200000, 0xC0200000, 0xFFC00000, 0x4F000000, 0xCF000000, 0x5F000000,
)  # fmt: skip
_F32_MORE = (
    0x3EFFFFFF, 0x43000000, 0x42FF0000, 0x437F8000, 0x43800000, 0x46FFFF00, 0x477FE000, 0x477FF000, 0x477FEFFF,
    0x477FFF00, 0x47800000, 0x43E00000, 0x43E80000, 0x43F00000, 0x47600000, 0x47700000, 0x4F800000, 0x5F800000,
    0xDF000000, 0x4B000000, 0x4B000001, 0x4AFFFFFF, 0x33000000, 0x33800000, 0x33800001, 0x32FFFFFF, 0x38800000,
    0x387FC000, 0x387FE000, 0xC3000000, 0xC3010000, 0xC7000000, 0xC7000100, 0x3B000000, 0x3A800000, 0x3A800001,
    0x7F800001, 0xC2C80000, 0x40490FDB, 0xC0C90FDB, 0x7F7F8000, 0x7F7FFFFE, 0x3F808000, 0x3F818000, 0x3F801000,
    0x3F803000, 0x37800000, 0x37000000, 0x3A000000,
)  # fmt: skip
_F16 = (
    0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x0001, 0x8001, 0x03FF, 0x0400, 0x8400, 0x7BFF, 0xFBFF,
    0x3800, 0x3E00, 0x3C01, 0x3BFF, 0x83FF, 0x4100, 0xC100, 0x7FFF, 0x5BF8, 0x6400, 0x4248, 0x57FF,
)  # fmt: skip
_BF16 = (
    0x0000, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0x0001, 0x8001, 0x007F, 0x0080, 0x8080, 0x7F7F, 0xFF7F,
    0x3F00, 0x3FC0, 0x3F81, 0x3F7F, 0x807F, 0x4020, 0xC020, 0x7FFF, 0x4F00, 0x4300, 0x4049, 0xC3E0,
)  # fmt: skip


def _integer_edges(bits: int) -> tuple[int, ...]:
    top = 1 << (bits - 1)
    return (
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        255,
        top - 1,
        top,
        top + 1,
        2 * top - 2,
        2 * top - 1,
        top >> 1,
        0x5555 & (top - 1),
    )


def _f64_of(words: tuple[int, ...]) -> tuple[int, ...]:
    with np.errstate(all="ignore"):
        wide = np.array(words, np.uint32).view(np.float32).astype(np.float64).view(np.uint64)
    own = (
        0x1,
        0x8000000000000001,
        0x000FFFFFFFFFFFFF,
        0x0010000000000000,
        0x7FEFFFFFFFFFFFFF,
        0x3FF0000000000001,
    )
    return (
        *own,
        *(int(one) for one in wide if int(one) & 0x7FFFFFFFFFFFFFFF <= 0x7FF0000000000000),
        0x7FF8000000000000,
    )


_EDGES: dict[str, tuple[int, ...]] = {
    "u8": _integer_edges(8), "s8": _integer_edges(8),
    "u16": _integer_edges(16), "s16": _integer_edges(16), "b16": _integer_edges(16),
    "u32": _integer_edges(32), "s32": _integer_edges(32), "b32": _integer_edges(32),
    "u64": _integer_edges(64), "s64": _integer_edges(64), "b64": _integer_edges(64),
    "f32": _F32, "f64": _f64_of(_F32), "f16": _F16, "bf16": _BF16, "tf32": _F32,
}  # fmt: skip


class Bits:
    """Random bits that stay the same for a name."""

    def __init__(self, name: str) -> None:
        self._stream = np.random.PCG64(zlib.crc32(name.encode()))

    def words(self, count: int) -> Array:
        """64-bit words."""
        return self._stream.random_raw(count)

    def below(self, limit: int, count: int) -> Array:
        """Numbers from 0 to ``limit`` - 1."""
        return self.words(count) % np.uint64(limit)

    def unit(self, count: int) -> Array:
        """Numbers in [-1, 1)."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1


def inputs_of(case: Case) -> list[Array]:
    """Bytes of each input, ``count`` by ``THREADS`` values each."""
    random = Bits(case.name)
    made = []
    scalars = [one for one in case.inputs if one.count == 1 and not one.choice]
    for one in case.inputs:
        if one.choice:
            values = np.concatenate([_chosen(one, random) for _ in range(one.count)])
        elif one.count == 1:
            values = _edged(one.kind, random, scalars.index(one), len(scalars), case)
        else:
            values = np.concatenate([_edged(one.kind, random, 0, 1, case) for _ in range(one.count)])
        made.append(values.astype(f"u{one.width}"))
    return made


def digest(case: Case) -> str:
    """Short fingerprint of a case's text and inputs: a recording fits a case whose digest is the same."""
    text = block_of(case, 0, 0).encode()
    return hashlib.sha256(b"".join([text, *(one.tobytes() for one in inputs_of(case))])).hexdigest()[:16]


def _edged(kind: str, random: Bits, place: int, of: int, case: Case) -> Array:
    """Every pair of edges for two inputs, random edges for three, and random bits in what remains."""
    if kind == "pred":
        return random.below(2, THREADS)
    if kind.endswith("x2") and kind in {"f16x2", "bf16x2"}:
        low, high = (_edged(kind[:-2], random, place, of, case) for _ in range(2))
        return low | (np.roll(high, 7 * (place + 1)) << np.uint64(16))
    if kind not in _EDGES:
        return random.words(THREADS) >> np.uint64(64 - 8 * WIDTH_BYTES[kind])
    edges = np.array(_EDGES[kind] + (_F32_MORE if kind == "f32" and of == 1 else ()), np.uint64)
    values = _loose(kind, random)
    if of == 1:
        values[: len(edges)] = edges
        return values
    if of == 2:
        chosen = edges[: min(len(edges), 18)] if len(edges) > 18 else edges
        values[: len(chosen) ** 2] = np.tile(chosen, len(chosen)) if place else np.repeat(chosen, len(chosen))
        tail = len(chosen) ** 2
        for index, edge in enumerate(edges[len(chosen) :]):  # the rest meet themselves and random values
            at = tail + 4 * index
            values[at : at + 4] = edge if place == index % 2 else values[at : at + 4]
            values[at] = edge
        return values
    values[:300] = edges[random.below(len(edges), 300).astype(np.int64)]
    return values


def _loose(kind: str, random: Bits) -> Array:
    """Random values: a third of any size, the rest of moderate size."""
    bits = 8 * WIDTH_BYTES[kind]
    any_bits = random.words(THREADS) >> np.uint64(64 - bits)
    if kind in {"f32", "f64", "f16", "bf16", "tf32"}:
        scale = power(random.below(21, THREADS).astype(np.int64) - 10)
        moderate = float_bits(random.unit(THREADS) * scale, kind)
    else:
        moderate = any_bits >> random.below(bits, THREADS)
    return np.where(np.arange(THREADS) % 3 == 0, any_bits, moderate)


def power(exponents: Array) -> Array:
    """Powers of two, exactly: ``exp2`` may round differently on another processor."""
    return np.ldexp(1.0, exponents)


def float_bits(values: Array, kind: str) -> Array:
    """Bits of numbers in a format, as 64-bit words; bf16 by cutting."""
    with np.errstate(all="ignore"):
        if kind == "f64":
            return values.astype(np.float64).view(np.uint64)
        if kind == "f16":
            return values.astype(np.float16).view(np.uint16).astype(np.uint64)
        single = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return single >> np.uint64(16) if kind == "bf16" else single


def _chosen(one: Operand, random: Bits) -> Array:
    """Values chosen in a named way."""
    bits = 8 * one.width
    name = one.choice
    if name == "nonzero":
        values = _loose(one.kind, random)
        edges = np.array([edge for edge in _EDGES[one.kind] if edge], np.uint64)
        values[: 4 * len(edges)] = np.repeat(edges, 4)
        return np.where(values == 0, np.uint64(1), values)
    if name == "shift":
        return np.concatenate([np.arange(70, dtype=np.uint64), random.below(bits + 8, THREADS - 70)])
    if name == "fields":  # positions and lengths
        return random.below(40, THREADS)
    if name == "mode":
        return random.below(4, THREADS)
    if name == "few":  # values that meet again in other lanes
        return random.below(5, THREADS)
    if name == "flags":
        return np.where(
            np.arange(THREADS) // 32 % 4 == 1,
            1,
            np.where(np.arange(THREADS) // 32 % 4 == 2, 0, random.below(2, THREADS)),
        )
    if name.startswith("below"):
        return random.below(int(name[5:]), THREADS)
    if name == "random":
        return random.words(THREADS) >> np.uint64(64 - bits)
    return _floats(one, random)


def _floats(one: Operand, random: Bits) -> Array:
    name = one.choice
    kind, _, several = one.kind.partition("x")
    parts = int(several or 1)
    made = []
    for _ in range(parts):
        if name == "unit":
            numbers = random.unit(THREADS)
        elif name == "whole":
            numbers = np.rint(random.unit(THREADS) * 4)
        elif name.startswith("tiny"):  # whole multiples of a power of two that is subnormal in the format
            numbers = np.rint(random.unit(THREADS) * 15) * 2.0 ** -int(name[4:])
        elif name == "angle":
            numbers = random.unit(THREADS) * np.where(np.arange(THREADS) % 2 == 0, 6.28, 300.0)
        elif name == "small":
            numbers = random.unit(THREADS) * 12
        elif name == "positive":
            numbers = (1.5 + random.unit(THREADS) / 2) * power(
                random.below(41, THREADS).astype(np.int64) - 20
            )
        elif name == "exponent":
            numbers = random.unit(THREADS) * 130
        else:
            raise ValueError(f"{name!r} is no way to choose {one.kind}.")
        made.append(_format_bits(numbers, kind))
    words = np.zeros(THREADS, np.uint64)
    for index, part in enumerate(made):
        words |= part << np.uint64(8 * one.width // parts * index)
    return words


def _format_bits(numbers: Array, kind: str) -> Array:
    if kind in {"e4m3", "e5m2"}:
        return _eight_bits(numbers, kind)
    bits = float_bits(numbers, kind)
    return bits & np.uint64(0xFFFFE000) if kind == "tf32" else bits


def _eight_bits(numbers: Array, kind: str) -> Array:
    """Nearest representable value, ties to the first; only for moderate numbers."""
    codes = np.arange(128)
    exponent_bits, fraction_bits, bias = (4, 3, 7) if kind == "e4m3" else (5, 2, 15)
    exponent, fraction = codes >> fraction_bits, codes & ((1 << fraction_bits) - 1)
    known = np.where(
        exponent == 0,
        fraction * 2.0 ** (1 - bias - fraction_bits),
        (1 + fraction / 2**fraction_bits) * power(exponent - bias),
    )
    usable = codes[: (127 if exponent_bits == 4 else 124)]
    nearest = np.abs(np.abs(numbers)[:, None] - known[usable][None, :]).argmin(axis=1)
    return (nearest | (np.signbit(numbers).astype(np.int64) << 7)).astype(np.uint64)
