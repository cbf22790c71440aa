"""Cold L2 before each timed call: contents overwritten, persisting lines of earlier calls given back."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import torch

from cutegen_nb.core.finding import Finding, Severity

_LIMIT_PERSISTING_L2 = 6
"""CU_LIMIT_PERSISTING_L2_CACHE_SIZE in cuda.h."""
_ACCESS_POLICY_WINDOW = 1
"""CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW in cuda.h."""
_PERSISTING = 2
"""CU_ACCESS_PROPERTY_PERSISTING."""
_LEAST_BYTES = 64 << 20
"""Least size in bytes of the buffer whose writing replaces the contents of the L2."""


class _Window(ctypes.Structure):
    """``CUaccessPolicyWindow``, padded to the 64 bytes of a ``CUlaunchAttributeValue``."""

    _fields_ = (
        ("base_ptr", ctypes.c_void_p),
        ("num_bytes", ctypes.c_size_t),
        ("hit_ratio", ctypes.c_float),
        ("hit_property", ctypes.c_int),
        ("miss_property", ctypes.c_int),
        ("rest", ctypes.c_char * 32),
    )


class ColdCache:
    """Overwrites the L2 and gives back the lines that a kernel asked to keep in it."""

    def __init__(self, usual_bytes: int = 0) -> None:
        """Allocate the buffer.

        `usual_bytes` of the L2 are set aside by the driver itself (see :func:`persisting_l2_bytes`).
        """
        self._scrap = torch.empty(max(2 * l2_bytes(), _LEAST_BYTES), dtype=torch.uint8, device="cuda")
        self._driver = _driver()
        self._expected_bytes = usual_bytes
        self.set_aside_bytes = 0
        """Most bytes of the L2 that a candidate was found to have set aside for persisting lines."""

    def give_back(self) -> None:
        """Reset all persisting lines and set nothing aside for them. Waits for the device where some was."""
        if self._driver is None:
            return
        size = _limit(self._driver)
        # A limit other than the expected one was set by a candidate.
        if size != self._expected_bytes:
            self.set_aside_bytes = max(self.set_aside_bytes, size)
        if size:
            # First turn persisting lines into normal ones, then allow no new ones.
            self._driver.cuCtxResetPersistingL2Cache()
            self._driver.cuCtxSetLimit(_LIMIT_PERSISTING_L2, ctypes.c_size_t(0))
            self._expected_bytes = _limit(self._driver)

    def overwrite(self) -> None:
        """Queue the overwriting of the L2; a CUDA graph can capture it."""
        self._scrap.zero_()

    def kept(self) -> Finding | None:
        """Return a flag where calls asked for memory to persist in the L2; None otherwise."""
        window = self._window_bytes()
        if not self.set_aside_bytes and not window:
            return None
        what = [f"{self.set_aside_bytes} bytes of the L2 were set aside"] if self.set_aside_bytes else []
        what += [f"the stream keeps {window} bytes of memory in it"] if window else []
        message = (
            f"Memory was set to persist in the L2 ({' and '.join(what)}): repeated calls on the same "
            "memory get faster and other work slower. The setting was reset before each timed call."
        )
        return Finding(kind="persisting-l2", message=message, severity=Severity.FLAG)

    def _window_bytes(self) -> int:
        """Bytes under a persisting access policy window of the current stream."""
        if self._driver is None:
            return 0
        window = _Window()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        # CUresult 0 is success; a window counts only with the property "persisting" for hits.
        failed = self._driver.cuStreamGetAttribute(stream, _ACCESS_POLICY_WINDOW, ctypes.byref(window))
        return int(window.num_bytes) if not failed and window.hit_property == _PERSISTING else 0


def persisting_l2_bytes() -> int:
    """Return the bytes of the L2 that are set aside now for persisting lines.

    Before a candidate's import that is the driver's own choice: 11,796,480 in every new context on an H200.
    """
    torch.empty(1, device="cuda")  # creates the context that has the limit
    driver = _driver()
    return 0 if driver is None else _limit(driver)


def _driver() -> Any:
    with contextlib.suppress(OSError):
        return ctypes.CDLL("libcuda.so.1")
    return None


def _limit(driver: Any) -> int:
    size = ctypes.c_size_t(0)
    driver.cuCtxGetLimit(ctypes.byref(size), _LIMIT_PERSISTING_L2)
    return int(size.value)


def l2_bytes() -> int:
    """L2 size in bytes as the driver states it."""
    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)
