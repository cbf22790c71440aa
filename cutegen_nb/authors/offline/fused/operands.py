"""Tensors of a kernel as text: CuTe names, loads and stores of an element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.expressions import DSL_TYPE, ValueType, kind_of
from cutegen_nb.authors.offline.fused.lowering import OperandAccess
from cutegen_nb.authors.offline.fused.plan import KernelPlan
from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.core.graph import DTYPE_BYTES

VECTOR_BYTES = 16
"""Bytes of the widest load or store that the generated kernels issue (128 bits)."""
LARGEST_OFFSET = 2**31 - 2**28
"""First offset that does not fit 32 bits, with room for a loop's last step past the end."""


def camel(name: str) -> str:
    """Convert a name to camel case for a CuTe variable: ``sum_1`` → ``Sum1``.

    Underscores at the end tell names apart, and stay.
    """
    words = "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)
    return words + "_" * (len(name) - len(name.rstrip("_")))


@dataclass(frozen=True, slots=True)
class Operand:
    """Tensor that a kernel reads or writes."""

    access: OperandAccess
    """Value and index."""
    dtype: str
    """dtype in memory, by torch's name."""

    @property
    def register(self) -> str:
        """Name of one element in the kernel."""
        return self.access.register

    @property
    def tensor(self) -> str:
        """Name of the whole tensor: ``mX``."""
        return f"m{camel(self.register.removesuffix('_out'))}"

    @property
    def divided(self) -> str:
        """Name of the tensor divided into vectors: ``gX``."""
        return f"g{self.tensor[1:]}"

    @property
    def fragment(self) -> str:
        """Name of the registers that hold its vectors: ``rX``."""
        return f"r{self.tensor[1:]}"

    def loaded(self, element: str) -> str:
        """Convert `element` from its type in memory to its type in registers."""
        kind = kind_of(self.dtype)
        if kind is ValueType.BOOL:
            return f"({element} != cutlass.Uint8(0))"
        return (
            element
            if DSL_TYPE[self.dtype] == f"cutlass.{kind.value}"
            else f"{element}.to(cutlass.{kind.value})"
        )

    def load(self, coordinate: str) -> str:
        """Statement that reads one element."""
        return f"{self.register} = {self.loaded(f'{self.tensor}[{coordinate}]')}"

    def rounded(self, value: str) -> str:
        """Convert `value` from its type in registers to its type in memory."""
        kind = kind_of(self.dtype)
        return (
            value
            if DSL_TYPE[self.dtype] == f"cutlass.{kind.value}"
            else f"{value}.to({DSL_TYPE[self.dtype]})"
        )

    def store(self, coordinate: str, value: str) -> str:
        """Statement that writes one element."""
        return f"{self.tensor}[{coordinate}] = {self.rounded(value)}"


def operands(accesses: Sequence[OperandAccess], dtype: Callable[[str], str]) -> list[Operand]:
    """Operands of a kernel; `dtype` returns a value's dtype in memory by name."""
    return [Operand(access, dtype(access.value)) for access in accesses]


def vector_elements(tensors: list[Operand]) -> int:
    """Number of elements in 128 bits of the widest dtype among the tensors."""
    return max(1, VECTOR_BYTES // max(DTYPE_BYTES[tensor.dtype] for tensor in tensors))


def is_wide(plan: KernelPlan) -> bool:
    """Return whether any kernel needs 64-bit offsets at the full size; then all kernels use them."""
    sizes = [elements([axis.extent for axis in (*kernel.rows, *kernel.cols)]) for kernel in plan.kernels]
    sizes += [pitch.whole for pitch in plan.pitches.values()]
    return max((max(size.full, size.scaled) for size in sizes), default=0) >= LARGEST_OFFSET
