"""malloc settings that keep freed memory in the process.

Arrays of a few megabytes are allocated and freed with every simulated instruction. By default glibc returns
such memory to the kernel and faults it in again page by page. For a matrix product these page faults took
nearly half of the whole time.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD``, parameters of ``mallopt`` in glibc's ``malloc.h``."""
_MMAP_BYTES = 32 << 20
"""Allocation size in bytes from which mmap is used: the largest threshold that glibc accepts."""
_KEPT_BYTES = 256 << 20
"""Free bytes at the end of the heap that glibc keeps before it trims the heap."""


@cache
def keep_freed_memory() -> bool:
    """Apply the settings once for the process; return whether the C library accepted them."""
    if sys.platform != "linux":
        return False
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is None:
        return False
    return bool(adjust(_MMAP_THRESHOLD, _MMAP_BYTES) and adjust(_TRIM_THRESHOLD, _KEPT_BYTES))
