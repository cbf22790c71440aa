"""Address ranges from mmap(2) that take memory only where they are written.

Python's ``mmap`` module has no ``MAP_FIXED``, so libc's functions are called with ctypes. Linux only.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

# Values of asm-generic/mman.h, which x86-64 and aarch64 share; Python names them from 3.13 on only.
_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000
_MADV_NOHUGEPAGE = 15
_FAILED = ctypes.c_void_p(-1).value
"""Return value of mmap(2) on failure, ``MAP_FAILED``."""
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_MOST_BYTES = 1 << 47
"""User address space of x86-64 with four-level page tables; also keeps sizes within ``size_t``."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class MappingFailed(Exception):
    """Refusal of the operating system to map a range; the message is a sentence."""


class AddressRange:
    """Range of addresses that reads as zeros, or as repeated bytes, until it is written.

    A page that is written becomes a private page of this process. ``numpy.asarray`` gives an array of uint8
    that keeps the range alive; the range is unmapped with the last reference.
    """

    def __init__(self, size_bytes: int) -> None:
        """Reserve `size_bytes` bytes, which read as zeros. Raises MappingFailed."""
        self.size_bytes = size_bytes
        """Bytes of the range; the mapping is rounded up to pages."""
        self.address = 0
        """Address of the first byte, which begins a page."""
        self._mapped_bytes = -(-max(size_bytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self.address = self._map(None, self._mapped_bytes, anonymous, -1)
        # A huge page would make 2 MiB of one stored word. A system without huge pages refuses the call.
        _libc.madvise(self.address, self._mapped_bytes, _MADV_NOHUGEPAGE)
        _ranges[self.address] = self

    def repeat(self, pattern: npt.NDArray[np.uint8]) -> None:
        """Replace the contents by `pattern` again and again; its last repetition may be cut off.

        The pages of one file in memory are mapped over the whole range, so the pattern takes memory once.
        Its length must be a multiple of the page size unless it covers the range. Raises MappingFailed.
        """
        pages = np.ascontiguousarray(pattern).data[: self._mapped_bytes]
        if len(pages) % mmap.PAGESIZE and len(pages) < self.size_bytes:
            raise ValueError(f"a pattern of {len(pages)} bytes is no multiple of {mmap.PAGESIZE}")
        step = -(-len(pages) // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            file = os.memfd_create("pattern")
        except OSError as error:
            raise MappingFailed(self._sentence(error.errno)) from error
        try:
            os.ftruncate(file, step)
            _write(file, pages)
            fixed = mmap.MAP_PRIVATE | _MAP_FIXED | _MAP_NORESERVE
            for offset in range(0, self._mapped_bytes, step):
                self._map(self.address + offset, min(step, self._mapped_bytes - offset), fixed, file)
        except OSError as error:
            raise MappingFailed(self._sentence(error.errno)) from error
        finally:
            os.close(file)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface, version 3: a vector of uint8 at the range's address."""
        return {"data": (self.address, False), "shape": (self.size_bytes,), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        """Unmap the range."""
        if self.address:
            _libc.munmap(self.address, self._mapped_bytes)

    def _map(self, address: int | None, size_bytes: int, flags: int, file: int) -> int:
        mapped = _FAILED
        if size_bytes < _MOST_BYTES:
            mapped = _libc.mmap(address, size_bytes, _READ_WRITE, flags, file, 0)
        if mapped == _FAILED or mapped is None:
            raise MappingFailed(self._sentence(ctypes.get_errno()))
        return int(mapped)

    def _sentence(self, error: int | None) -> str:
        reason = f" ({os.strerror(error)})" if error else ""
        return f"A tensor of {self.size_bytes / 2**30:,.1f} GiB does not fit the address space{reason}."


_ranges: weakref.WeakValueDictionary[int, AddressRange] = weakref.WeakValueDictionary()
"""Living ranges by their first address."""


def range_at(address: int) -> AddressRange | None:
    """Return the living range that begins at `address`; None if there is none."""
    return _ranges.get(address)


def _write(file: int, data: memoryview) -> None:
    """Write all of `data`: a single write(2) may write only a part."""
    while data:
        data = data[os.write(file, data) :]
