"""CuTe layouts of a compiled candidate, as text that needs no DSL to read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayoutKind(StrEnum):
    """Kind of object that a layout describes."""

    LAYOUT = "layout"
    """A layout that the kernel names: coordinates to an index."""
    SHARED = "shared tensor"
    """A tensor in shared memory."""
    ACCESS = "shared access"
    """A tiled copy reading from, or writing to, a tensor in shared memory."""
    COPY = "tiled copy"
    """Assignment of a tile's values to threads in a tiled copy."""
    MMA = "tiled MMA"
    """Assignment of the values of A, B and C to threads in a tiled MMA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TvLayout:
    """Thread–value layout: the element of a tile that each value of each thread is."""

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
    """Kind of object that the layout describes."""
    name: str = ""
    """Name in the source; empty where there is none."""
    text: str = ""
    """Layout in CuTe's notation; empty for a tiled copy or MMA."""
    line: int = 0
    """Line of the candidate's source, from 1; 0 where there is none."""
    tensor_line: int = 0
    """For an access: the line that made the tensor; 0 where it is not known."""
    file: str = ""
    """Path of that source file, as the compiler saw it."""
    element: str = ""
    """Element type in the compiler's spelling (``f16``), where there is one."""
    pointer_swizzle: str = ""
    """Swizzle of byte addresses that the tensor's pointer carries (``S<3,4,3>``), where there is one."""
    atom: str = ""
    """Copy or MMA atom, in the compiler's spelling."""
    access_bits: int = 0
    """Bits that a thread moves in one access of a tiled copy; 0 where they are not known."""
    views: tuple[TvLayout, ...] = ()
    """Thread–value layouts of a tiled copy or MMA."""
