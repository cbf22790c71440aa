"""CuTe layouts that a candidate was compiled with, as text that any process can read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayoutKind(StrEnum):
    """What a layout is of."""

    LAYOUT = "layout"
    """One that the kernel names: coordinates to an index."""
    SHARED = "shared tensor"
    """A tensor in shared memory."""
    ACCESS = "shared access"
    """A tiled copy reading from, or writing to, a tensor in shared memory."""
    COPY = "tiled copy"
    """Which thread copies which values of a tile."""
    MMA = "tiled MMA"
    """Which thread holds which values of A, B and C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TvLayout:
    """Which element of a tile each value of each thread is."""

    role: str
    """``source``, ``destination``, ``A``, ``B`` or ``C``."""
    text: str
    """(thread, value) → index into the tile, its modes counted column-major: ``((4,8),2):((2,8),1)``."""
    tiler: str
    """The tile's modes, as CuTe writes a tiler: ``[32:1;16:1]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRecord:
    """One layout of a compiled kernel, with the line that made it."""

    kind: LayoutKind
    """What it is of."""
    name: str = ""
    """What the source calls it; empty where it has no name there."""
    text: str = ""
    """As CuTe writes it; empty for a tiled copy or MMA."""
    line: int = 0
    """Line of the candidate's source, from 1; 0 where there is none."""
    tensor_line: int = 0
    """For an access: the line that made the tensor; 0 where that is not known."""
    file: str = ""
    """Path of that source, as the compiler saw it."""
    element: str = ""
    """Type of an element as the compiler writes it (``f16``), where there is one."""
    pointer_swizzle: str = ""
    """Swizzle of byte addresses that the tensor's pointer carries (``S<3,4,3>``), where it does."""
    atom: str = ""
    """The copy or MMA atom, as the compiler writes it."""
    access_bits: int = 0
    """Bits that a thread moves in one access, for a tiled copy; 0 where that is not known."""
    views: tuple[TvLayout, ...] = ()
    """Thread–value layouts of a tiled copy or MMA."""
