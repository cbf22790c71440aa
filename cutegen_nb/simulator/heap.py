"""Keeps freed memory in the process, because arrays of a few megabytes come and go with every instruction.

glibc gives such memory back to the kernel and takes it again page by page; for a matrix product that is
nearly half of the whole time.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of the parameters in glibc's ``malloc.h``."""
_MMAP_BYTES = 32 << 20
"""Larger arrays still come and go by mmap; glibc refuses more."""
_KEPT_BYTES = 256 << 20
"""Free memory at the end of the heap that stays."""


@cache
def keep_freed_memory() -> bool:
    """Set it once for the process; gives whether this C library knows how."""
    if sys.platform != "linux":
        return False
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is None:
        return False
    return bool(adjust(_MMAP_THRESHOLD, _MMAP_BYTES) and adjust(_TRIM_THRESHOLD, _KEPT_BYTES))
