"""CuTe layouts and swizzles: parsing, exact evaluation of coordinates to indices, and printing as CuTe does.

Definitions follow the CuTe documentation ("Layouts"; "Swizzle" in ``cute/swizzle.hpp``). Integer coordinates
count colexicographically: the first mode varies fastest.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cutegen_nb.core.errors import UsageError

IntTuple = int | tuple["IntTuple", ...]
"""CuTe's IntTuple: an integer, or a nested tuple of integers."""

_TOKEN = re.compile(r"\d+|[(),]")
"""Tokens of a shape or stride: integers, parentheses and commas."""
_SWIZZLE = re.compile(r"(?:Swizzle|Sw|S)<(\d+),(\d+),(-?\d+)>")
"""Swizzle in any of the spellings that CuTe and the DSL print."""
_LONGEST, _MOST_TUPLES = 2000, 200
"""Most characters and most tuples in a layout's text. The text may come from a candidate, and nesting is
parsed by recursion."""
_WRITTEN = "such as (8,(2,4)):(8,(1,2)) or S<3,4,3> o 0 o (8,64):(64,1)"
"""Examples of valid text, for error messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swizzle:
    """CuTe swizzle ``Swizzle<bits, base, shift>``: an exclusive-or of two bit fields of an index.

    For a shift that is not negative, the ``bits`` bits from ``base + shift`` are combined into those from
    ``base``.
    """

    bits: int
    """Number of bits in each field."""
    base: int
    """Lowest bit that changes, for a shift that is not negative."""
    shift: int
    """Distance in bits from the field that changes to the field that is mixed in; negative where the latter
    is lower."""

    def __call__(self, index: int) -> int:
        """Return the swizzled index."""
        # For a negative shift the source field starts at `base` and the target lies ``-shift`` bits higher.
        mask = ((1 << self.bits) - 1) << (self.base + max(0, self.shift))
        mixed = index & mask
        return index ^ (mixed >> self.shift if self.shift >= 0 else mixed << -self.shift)

    @property
    def period(self) -> int:
        """Number of indices after which the pattern repeats: a power of two."""
        # Bits above the higher of the two fields take no part in the exclusive-or.
        return int(1 << (self.base + self.bits + abs(self.shift)))

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """CuTe layout: ``swizzle(offset + inner product of coordinate and stride)``."""

    shape: IntTuple
    """Extents, nested as the strides are."""
    stride: IntTuple
    """Distance in elements between neighbours of each mode, nested as the shape is."""
    swizzle: Swizzle | None = None
    """Swizzle applied to the sum; None without one."""
    offset: int = 0
    """Offset in elements, added before the swizzle."""

    def __call__(self, coordinate: IntTuple) -> int:
        """Return the index at a coordinate: an integer, or a tuple with an entry for each mode.

        Raises UsageError if the coordinate does not fit the shape.
        """
        # The swizzle is applied last, to offset and inner product together.
        plain = self.offset + _dot(coordinate, self.shape, self.stride)
        return self.swizzle(plain) if self.swizzle else plain

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return size(self.shape)

    @property
    def cosize(self) -> int:
        """Largest index plus one. As in CuTe, the swizzle is left out."""
        return self.offset + _last(self.shape, self.stride) + 1

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def depth(self) -> int:
        """Nesting depth of the shape; 0 for an integer."""
        return _depth(self.shape)

    def mode(self, number: int) -> Layout:
        """Return one top-level mode as a layout, without swizzle and offset."""
        if not isinstance(self.shape, tuple) or not isinstance(self.stride, tuple):
            return Layout(shape=self.shape, stride=self.stride)
        return Layout(shape=self.shape[number], stride=self.stride[number])

    def plain(self) -> Layout:
        """Return the layout without its swizzle."""
        return replace(self, swizzle=None)

    def indices(self) -> Iterator[int]:
        """Iterate over the indices at 0, 1, 2, … as integer coordinates."""
        return (self(number) for number in range(self.size))

    def __str__(self) -> str:
        inner = f"{written(self.shape)}:{written(self.stride)}"
        return f"{self.swizzle} o {self.offset} o {inner}" if self.swizzle or self.offset else inner


def parse_layout(text: str) -> Layout:
    """Parse a layout as CuTe writes it; a shape alone is compact, its first mode fastest.

    Raises UsageError with the text if it is no layout, or if an extent or stride is not a known number.
    """
    if len(text) > _LONGEST or text.count("(") > _MOST_TUPLES:
        raise UsageError(
            f"A layout of {len(text):,} characters with {text.count('(')} tuples is more than is read; "
            f"a kernel's has fewer than {_LONGEST:,} and {_MOST_TUPLES}."
        )
    compact = re.sub(r"\s+", "", text)
    swizzle, offset, inner = None, 0, compact
    # A composed layout is written ``swizzle o offset o shape:stride``.
    composed = re.fullmatch(r"(.*>)o(\d+)o(.*)", compact)
    if composed:
        swizzle, offset, inner = parse_swizzle(composed[1]), int(composed[2]), composed[3]
    shape_text, colon, stride_text = inner.partition(":")
    shape = _read(shape_text, text)
    stride = _read(stride_text, text) if colon else compact_stride(shape)
    if not _congruent(shape, stride):
        raise UsageError(
            f"The strides {written(stride)} are not nested as the shape {written(shape)} is; "
            "give one stride for each extent."
        )
    if 0 in flat(shape):
        raise UsageError(f"The shape {written(shape)} has an extent of 0; there is nothing to draw.")
    return Layout(shape=shape, stride=stride, swizzle=swizzle, offset=offset)


def parse_swizzle(text: str) -> Swizzle:
    """Parse a swizzle from ``S<3,4,3>``, ``Sw<3,4,3>`` or ``3,4,3``.

    Raises UsageError if the text is none.
    """
    compact = re.sub(r"\s+", "", text)
    match = _SWIZZLE.fullmatch(compact) or _SWIZZLE.fullmatch(f"S<{compact}>")
    if match is None:
        raise UsageError(f"{text!r} is no swizzle; write BITS,BASE,SHIFT such as 3,4,3.")
    bits, base, shift = (int(group) for group in match.groups())
    # The two bit fields overlap for a smaller shift; CuTe asserts the same.
    if abs(shift) < bits:
        raise UsageError(
            f"Swizzle {bits},{base},{shift} mixes bits into themselves; SHIFT must be at least BITS."
        )
    return Swizzle(bits=bits, base=base, shift=shift)


def parse_tiler(text: str) -> tuple[Layout, ...]:
    """Parse the modes of a tile from ``[32:1;16:1]`` or a shape such as ``(32,16)``. Raises UsageError."""
    compact = re.sub(r"\s+", "", text)
    if compact.startswith("["):
        return tuple(parse_layout(part) for part in compact.strip("[]").split(";"))
    shape = parse_layout(compact).shape
    return tuple(
        Layout(shape=size(one), stride=1) for one in (shape if isinstance(shape, tuple) else (shape,))
    )


def size(shape: IntTuple) -> int:
    """Return the product of all extents."""
    return shape if isinstance(shape, int) else math.prod(flat(shape))


def flat(items: IntTuple) -> tuple[int, ...]:
    """Return all integers of a nested tuple, in order."""
    if isinstance(items, int):
        return (items,)
    return tuple(number for item in items for number in flat(item))


def coordinate(number: int, shape: IntTuple) -> IntTuple:
    """Return the coordinate, nested as `shape`, of an integer coordinate."""
    if isinstance(shape, int):
        return number
    found: list[IntTuple] = []
    for extent in shape:
        # Colexicographic order: the first mode takes the remainder, later modes the quotient.
        found.append(coordinate(number % size(extent), extent))
        number //= size(extent)
    return tuple(found)


def compact_stride(shape: IntTuple, step: int = 1) -> IntTuple:
    """Return the strides of a tensor without gaps, its first mode fastest."""
    if isinstance(shape, int):
        return step
    found: list[IntTuple] = []
    for extent in shape:
        found.append(compact_stride(extent, step))
        step *= size(extent)
    return tuple(found)


def written(items: IntTuple) -> str:
    """Format a nested tuple as CuTe writes it."""
    if isinstance(items, int):
        return str(items)
    return f"({','.join(written(item) for item in items)})"


def _dot(at: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    if isinstance(shape, int) and isinstance(stride, int):
        if isinstance(at, int):
            return at * stride
        return _inner_of_one(at, shape, stride)
    assert isinstance(shape, tuple)
    assert isinstance(stride, tuple)
    if isinstance(at, int):
        return _colexicographic(at, shape, stride)
    if len(at) != len(shape):
        raise UsageError(
            f"The coordinate {written(at)} has {len(at)} modes, the shape {written(shape)} {len(shape)}."
        )
    return sum(_dot(*each) for each in zip(at, shape, stride, strict=True))


def _inner_of_one(at: tuple[IntTuple, ...], shape: int, stride: int) -> int:
    if len(at) != 1:
        raise UsageError(f"The coordinate {written(at)} does not fit an extent of {shape}.")
    return _dot(at[0], shape, stride)


def _colexicographic(number: int, shape: tuple[IntTuple, ...], stride: tuple[IntTuple, ...]) -> int:
    """Return the index at an integer coordinate, which counts the coordinates, the first mode fastest.

    The last mode is not reduced modulo its extent, so that an integer beyond the size goes on along it.
    """
    *modes, (_, last_stride) = _flat_modes(shape, stride)
    index = 0
    for extent, step in modes:
        index += number % extent * step
        number //= extent
    return index + number * last_stride


@functools.lru_cache(maxsize=256)
def _flat_modes(shape: IntTuple, stride: IntTuple) -> tuple[tuple[int, int], ...]:
    """Return extent and stride of every mode, without nesting; a drawing asks for them at each element."""
    return tuple(zip(flat(shape), flat(stride), strict=True))


def _last(shape: IntTuple, stride: IntTuple) -> int:
    """Largest index that the strides give, without offset: the sum of (extent − 1) × stride."""
    # Strides are not negative here: the parser reads digits only.
    return sum((extent - 1) * step for extent, step in zip(flat(shape), flat(stride), strict=True))


def _depth(shape: IntTuple) -> int:
    return 0 if isinstance(shape, int) else 1 + max((_depth(item) for item in shape), default=0)


def _congruent(one: IntTuple, other: IntTuple) -> bool:
    """Return whether two nested tuples have the same nesting."""
    if isinstance(one, int) or isinstance(other, int):
        return isinstance(one, int) and isinstance(other, int)
    return len(one) == len(other) and all(_congruent(*pair) for pair in zip(one, other, strict=True))


def _read(text: str, whole: str) -> IntTuple:
    tokens = _TOKEN.findall(text)
    # Other characters, such as ``?`` or a name, stand for extents that are not known when traced.
    if "".join(tokens) != text or not tokens:
        raise UsageError(f"{whole!r} is no layout of known numbers; write one {_WRITTEN}.")
    found, after = _item(tokens, 0, whole)
    if after != len(tokens):
        raise UsageError(
            f"{whole!r} goes on after its end at {''.join(tokens[after:])!r}; write one {_WRITTEN}."
        )
    return found


def _item(tokens: Sequence[str], at: int, whole: str) -> tuple[IntTuple, int]:
    if at < len(tokens) and tokens[at].isdigit():
        return int(tokens[at]), at + 1
    if at >= len(tokens) or tokens[at] != "(":
        raise UsageError(f"{whole!r} has no number where one is due; write a layout {_WRITTEN}.")
    items: list[IntTuple] = []
    at += 1
    while True:
        item, at = _item(tokens, at, whole)
        items.append(item)
        if at >= len(tokens):
            raise UsageError(f"{whole!r} has an open parenthesis; write a layout {_WRITTEN}.")
        at += 1
        if tokens[at - 1] == ")":
            return tuple(items), at
        if tokens[at - 1] != ",":
            raise UsageError(f"{whole!r} lacks a comma; write a layout {_WRITTEN}.")
