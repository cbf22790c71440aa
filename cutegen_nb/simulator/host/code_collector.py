"""PTX and machine code of the kernels that the CuTe DSL compiles in this process for a GPU."""

from __future__ import annotations

import contextlib

from cutegen_nb.analysis.binary.listing import KernelCode, kernel_names
from cutegen_nb.simulator.host.dsl import after_compiling

_MOST_KERNELS = 16
"""Most kernels of one candidate that are kept. Compiling once per shape repeats much the same code."""


class CodeCollector:
    """Code of the kernels compiled since :meth:`install`, the first of each name."""

    def __init__(self) -> None:
        self._found: dict[str, KernelCode] = {}

    def install(self) -> None:
        """Keep the code of every program compiled from now on. Imports the DSL."""
        with contextlib.suppress(AttributeError, ImportError):  # another release; it is judged without code
            after_compiling(self.take)

    def take(self, text: str, cubin: bytes) -> None:
        """Keep the kernels of one compiled module."""
        for kernel in kernel_names(text):
            if len(self._found) < _MOST_KERNELS:
                self._found.setdefault(kernel, KernelCode(kernel=kernel, ptx=text, cubin=cubin))

    def found(self) -> tuple[KernelCode, ...]:
        """Return the code of the kernels, in the order of their compilation."""
        return tuple(self._found.values())
