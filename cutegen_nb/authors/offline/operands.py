"""Text of one tensor inside a kernel: its CuTe names, and how an element is read and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions import DSL_TYPE, Kind, kind_of
from cutegen_nb.authors.offline.ir import Extent
from cutegen_nb.authors.offline.loops import LoopNest
from cutegen_nb.authors.offline.lowering import Access
from cutegen_nb.core.graph import DTYPE_BYTES

VECTOR_BYTES = 16
"""The widest load or store a thread can issue (128 bits)."""
LARGEST_OFFSET = 2**31
"""Offsets from here on do not fit 32 bits."""


def camel(name: str) -> str:
    """``sum_1`` → ``Sum1``: what follows the ``m``, ``g`` or ``r`` of a CuTe variable."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a kernel reads or writes."""

    access: Access
    """What and where."""
    dtype: str
    """In memory, as torch spells it."""

    @property
    def register(self) -> str:
        """Name of one element in the kernel."""
        return self.access.register

    @property
    def tensor(self) -> str:
        """The whole tensor: ``mX``."""
        return f"m{camel(self.register.removesuffix('_out'))}"

    @property
    def divided(self) -> str:
        """The tensor divided into vectors: ``gX``."""
        return f"g{self.tensor[1:]}"

    @property
    def fragment(self) -> str:
        """Registers that hold its vectors: ``rX``."""
        return f"r{self.tensor[1:]}"

    def loaded(self, element: str) -> str:
        """`element` of memory as the kind it is computed in."""
        kind = kind_of(self.dtype)
        if kind is Kind.BOOL:
            return f"({element} != cutlass.Uint8(0))"
        return (
            element
            if DSL_TYPE[self.dtype] == f"cutlass.{kind.value}"
            else f"{element}.to(cutlass.{kind.value})"
        )

    def load(self, coordinate: str) -> str:
        """A line that reads one element."""
        return f"{self.register} = {self.loaded(f'{self.tensor}[{coordinate}]')}"

    def rounded(self, value: str) -> str:
        """`value` as it is stored."""
        kind = kind_of(self.dtype)
        return (
            value
            if DSL_TYPE[self.dtype] == f"cutlass.{kind.value}"
            else f"{value}.to({DSL_TYPE[self.dtype]})"
        )

    def store(self, coordinate: str, value: str) -> str:
        """A line that writes one element."""
        return f"{self.tensor}[{coordinate}] = {self.rounded(value)}"


def operands(accesses: Sequence[Access], dtype: Callable[[str], str]) -> list[Operand]:
    """Operands of a kernel; `dtype` gives the dtype in memory of a value by name."""
    return [Operand(access, dtype(access.value)) for access in accesses]


def vector_elements(tensors: list[Operand]) -> int:
    """How many elements the widest of the tensors carries in 128 bits."""
    return max(1, VECTOR_BYTES // max(DTYPE_BYTES[tensor.dtype] for tensor in tensors))


def is_wide(nest: LoopNest) -> bool:
    """Whether offsets at the full size need 64 bits."""
    total = Extent(1, 1)
    for loop in nest.all:
        total = total * loop.extent
    return max(total.full, total.scaled) >= LARGEST_OFFSET
