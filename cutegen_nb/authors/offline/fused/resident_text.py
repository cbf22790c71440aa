"""Vectors of a row as text: rows that begin at a vector's start, and rows that begin anywhere in one."""

from __future__ import annotations

from typing import ClassVar

from cutegen_nb.authors.offline.expressions.expressions import Apply, Expr, Leaf, ValueType, leaves
from cutegen_nb.authors.offline.fused.emit_rows import RowKernel
from cutegen_nb.authors.offline.fused.operands import Operand
from cutegen_nb.authors.offline.templates import indented


def by_reciprocals(exprs: dict[str, Expr], varying: frozenset[str]) -> tuple[dict[str, Expr], list[str]]:
    """Divide by a row's number through its reciprocal; also return the statements that compute those.

    A division takes some ten instructions an element, the reciprocal costs one rounding more.
    """
    found: dict[str, str] = {}
    known: dict[int, Expr] = {}

    def changed(expr: Expr) -> Expr:
        if not isinstance(expr, Apply):
            return expr
        done = known.get(id(expr))
        if done is None:
            args = tuple(changed(arg) for arg in expr.args)
            done = known[id(expr)] = product(Apply(expr.op, args, expr.kind))
        return done

    def product(expr: Apply) -> Apply:
        if expr.op != "/" or expr.kind is not ValueType.F32:
            return expr
        dividend, divisor = expr.args
        if not isinstance(divisor, Leaf) or divisor.name in varying or not leaves(dividend) & varying:
            return expr
        name = f"per_{divisor.name}"
        found[name] = f"{name} = 1.0 / {divisor.name}"
        return Apply("*", (dividend, Leaf(name, ValueType.F32)), ValueType.F32)

    return {name: changed(expr) for name, expr in exprs.items()}, list(found.values())


class AlignedVectors:
    """Vectors of a length that divides the row."""

    from_host: ClassVar[bool] = True
    """True if the host passes the length of a vector."""
    needed: ClassVar[frozenset[str]] = frozenset()
    """Functions of the module that the text calls."""
    sizes: ClassVar[list[str]] = ["chunks = cols // VEC"]
    """Launcher statements that count the vectors of a row."""
    place: ClassVar[list[str]] = ["col = chunk * VEC + j"]
    """Statements that find an element's column."""
    present: ClassVar[str] = "((v + 1) * STEP <= chunks) | (chunk < chunks)"
    """Condition for a thread to have a vector v: all have, but in the last turn."""

    def __init__(self, base: RowKernel, held: list[Operand], batch: int) -> None:
        self.base, self.held, self.batch = base, held, batch
        self.fragments: list[Operand] = []
        self.scalars: list[Operand] = []

    @property
    def setup(self) -> list[str]:
        """Statements before all loops."""
        tensors = [t for t in self.base.tensors if self.base.varies(t)]
        return [
            "chunks = cols // VEC",
            *(f"{t.divided} = cute.logical_divide({t.tensor}, (None, VEC))" for t in tensors),
        ]

    def _is_vector(self, tensor: Operand) -> bool:
        return self.base.nest.cols[-1] in self.base.nest.memory_order(tensor.access)

    def at(self, tensor: Operand, row: str = "row") -> str:
        """Vector of the tensor in global memory, in the row that a variable names."""
        return f"{tensor.divided}[{row}, (None, chunk)]"

    def fragment(self, tensor: Operand) -> str:
        """Registers of the tensor's vector, or of its number u of several."""
        return f"{tensor.fragment}[None, u]" if self.batch > 1 else tensor.fragment

    def to_shared(self, tensor: Operand, row: str = "row") -> list[str]:
        """Statements that start the copy of a vector to shared memory."""
        name = tensor.tensor[1:]
        return [f"cute.copy(to_s{name}, {self.at(tensor, row)}, s{name}[None, tidx, v])"]

    def to_registers(self, tensor: Operand) -> list[str]:
        """Statements that load a vector from global memory."""
        return [f"cute.autovec_copy({self.at(tensor)}, {self.fragment(tensor)})"]

    def copies(self, loads: list[Operand]) -> list[str]:
        """Statements that bring the vectors of `loads` to registers."""
        lines: list[str] = []
        for tensor in loads:
            if not self._is_vector(tensor):
                lines += self._scalar(tensor)
                continue
            self.fragments.append(tensor)
            if tensor in self.held:
                lines += [
                    "if cutlass.const_expr(v < KEPT):",
                    f"    cute.autovec_copy(s{tensor.tensor[1:]}[None, tidx, v], {self.fragment(tensor)})",
                    "else:",
                    *indented(self.to_registers(tensor)),
                ]
            else:
                lines += self.to_registers(tensor)
        return lines

    def _scalar(self, tensor: Operand) -> list[str]:
        self.scalars.append(tensor)
        return [f"{tensor.fragment}[{self._number}] = {tensor.divided}[row, (0, chunk)]"]

    @property
    def _number(self) -> str:
        return "u" if self.batch > 1 else "0"

    def elements(self, loads: list[Operand], inner: list[str]) -> list[str]:
        """Statements for element j of a vector."""
        element = "j, u" if self.batch > 1 else "j"
        places = {t: element if self._is_vector(t) else self._number for t in loads}
        return [*(f"{t.register} = {t.loaded(f'{t.fragment}[{at}]')}" for t, at in places.items()), *inner]

    def stores(self, tensors: list[Operand]) -> list[str]:
        """Statements that write the vectors of `tensors`."""
        return [f"cute.autovec_copy({t.fragment}, {self.at(t)})" for t in tensors]


class PeeledVectors(AlignedVectors):
    """Vectors of 128 bits cut from the whole tensor: a row's first and last hold its neighbours', too."""

    from_host: ClassVar[bool] = False
    needed: ClassVar[frozenset[str]] = frozenset({"whole_vectors", "copy_edge"})
    place: ClassVar[list[str]] = []
    present: ClassVar[str] = "chunk < chunks"

    @staticmethod
    def fits(base: RowKernel) -> bool:
        """Return whether each tensor has one row behind another, or runs along the columns alone."""
        rows, cols = base.nest.rows, base.nest.cols
        orders = [base.nest.memory_order(t.access) for t in base.tensors if base.varies(t)]
        return len(rows) == len(cols) == 1 and all(order in ((*rows, *cols), cols) for order in orders)

    def __init__(self, base: RowKernel, held: list[Operand], batch: int) -> None:
        super().__init__(base, held, batch)
        self.sizes = [  # type: ignore[misc]
            f"VEC = {base.widest}  # elements of 128 bits",
            "chunks = cute.ceil_div(cols + VEC - 1, VEC)  # vectors that a row touches at most",
        ]

    def _is_vector(self, tensor: Operand) -> bool:
        return self.base.nest.memory_order(tensor.access) == self.base.nest.all

    @property
    def setup(self) -> list[str]:
        """Statements before all loops."""
        tensors = [t for t in self.base.tensors if self._is_vector(t)]
        return [
            "# Rows of an odd length begin anywhere in a vector, so vectors are cut from the whole tensor.",
            "# The first and the last one of a row hold elements of its neighbours, too:",
            "#   vector   | begin        | begin + 1    | …            |",
            "#   element  | . . x0 x1    | x2 x3 x4 x5  | …  x(cols-1) . |      head = 2",
            f"size = cute.size({tensors[0].tensor})",
            "begin = row * cols // VEC",
            "head = cutlass.Int32(row * cols % VEC)",
            "chunks = (head + cols + VEC - 1) // VEC",
            *(f"{t.divided} = whole_vectors({t.tensor}, VEC)" for t in tensors),
        ]

    def at(self, tensor: Operand, row: str = "row") -> str:  # noqa: ARG002 - `begin` is that of the row
        """Vector of the tensor in global memory."""
        return f"{tensor.divided}[None, begin + chunk]"

    def _guarded(self, copy: str, tensor: Operand, target: str) -> list[str]:
        return [
            "if begin + chunk < size // VEC:",
            f"    {copy}",
            "else:",
            f"    copy_edge({self.at(tensor)}, {target}, size % VEC)",
        ]

    def to_shared(self, tensor: Operand, row: str = "row") -> list[str]:
        """Statements that start the copy of a vector to shared memory."""
        name = tensor.tensor[1:]
        return self._guarded(super().to_shared(tensor, row)[0], tensor, f"s{name}[None, tidx, v]")

    def to_registers(self, tensor: Operand) -> list[str]:
        """Statements that load a vector from global memory."""
        return self._guarded(super().to_registers(tensor)[0], tensor, self.fragment(tensor))

    def _scalar(self, tensor: Operand) -> list[str]:  # noqa: ARG002 - elements of a vector differ
        return []

    def elements(self, loads: list[Operand], inner: list[str]) -> list[str]:
        """Statements for element j of a vector, if it belongs to the row."""
        scalars = [t.load("row, col") for t in loads if not self._is_vector(t)]
        return [
            "col = chunk * VEC + j - head",
            "if (col >= 0) & (col < cols):",
            *indented([*scalars, *super().elements([t for t in loads if self._is_vector(t)], inner)]),
        ]

    def stores(self, tensors: list[Operand]) -> list[str]:
        """Statements that write the vectors of `tensors`, of a row's first and last only its own elements."""
        if not tensors:
            return []
        return [
            "if (chunk * VEC >= head) & (chunk * VEC + VEC - head <= cols):",
            *indented(super().stores(tensors)),
            "else:",
            "    for j in cutlass.range_constexpr(VEC):",
            "        col = chunk * VEC + j - head",
            "        if (col >= 0) & (col < cols):",
            *(f"            {t.divided}[j, begin + chunk] = {t.fragment}[j]" for t in tensors),
        ]
