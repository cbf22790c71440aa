"""PTX and machine code of the kernels that the CuTe DSL compiles in this process for a GPU."""

from __future__ import annotations

import contextlib
import re

from cutegen_nb.analysis.binary.listing import KernelCode, kernel_names
from cutegen_nb.simulator.host.dsl import after_compiling

_MOST_KERNELS = 16
"""Most kernels of one candidate that are kept. Compiling once per shape repeats much the same code."""


class CodeCollector:
    """Code of the kernels compiled since :meth:`install`, the first of each name."""

    def __init__(self) -> None:
        self._found: dict[str, KernelCode] = {}
        self._launchers: set[str] = set()

    def install(self) -> None:
        """Keep the code of each launcher's first compilation from now on. Imports the DSL."""
        with contextlib.suppress(AttributeError, ImportError):  # another release; it is judged without code
            after_compiling(self.take, self.wants)

    def wants(self, program: str) -> bool:
        """Return whether a program is the first of its launcher: later ones differ in shapes only."""
        launcher = re.split(r"_(?:Fake)?Tensor", program, maxsplit=1)[0]
        first = launcher not in self._launchers
        self._launchers.add(launcher)
        return first

    def take(self, text: str, cubin: bytes) -> None:
        """Keep the kernels of one compiled module."""
        for kernel in kernel_names(text):
            if len(self._found) < _MOST_KERNELS:
                self._found.setdefault(kernel, KernelCode(kernel=kernel, ptx=text, cubin=cubin))

    def found(self) -> tuple[KernelCode, ...]:
        """Return the code of the kernels, in the order of their compilation."""
        return tuple(self._found.values())
