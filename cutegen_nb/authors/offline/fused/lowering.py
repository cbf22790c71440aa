"""Lowering of values to expressions of a kernel's index, with the loads that they need.

A kernel runs over *axes*. Every value is requested at an index, which gives for each of its dimensions the
axes that run along it (none for a dimension of size 1). Views and permutes only rewrite the index, so they
never copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cutegen_nb.authors.offline.expressions.expressions import (
    Expr,
    Leaf,
    ValueType,
    cast,
    kind_of,
    number,
    rounded,
)
from cutegen_nb.authors.offline.expressions.pointwise import UnsupportedOperationError, pointwise
from cutegen_nb.authors.offline.graph.ir import ONE, Count, Extent, GraphProgram, Name, Op, Operand, Shape
from cutegen_nb.core.errors import Declined

_DISCONTINUOUS = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "floor", "ceil", "trunc", "round", "sign", "sgn", "fmod", "remainder",
    "isnan", "reduce:argmax", "reduce:argmin",
})  # fmt: skip
"""Discontinuous operations: a change in the last digit of an operand may change the result by much. Their
operands are therefore rounded where the reference rounds them; so are those of results in float32 or
float64."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One loop of a kernel."""

    extent: Extent
    """Trip count."""


COLUMN = "col"
"""Name of the register that counts along a row."""

Index = tuple[tuple[Axis, ...], ...]
"""Axes along each dimension of a value, slowest first."""


@dataclass(frozen=True, slots=True)
class OperandAccess:
    """Value in memory, read or written at an index."""

    value: str
    """Name of a buffer, a temporary or an output."""
    index: Index
    """Index of the element."""
    register: str
    """Name of the element in the kernel."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes in the order of memory, slowest first."""
        return tuple(axis for dim in self.index for axis in dim)


class SplitNeededError(Exception):
    """An axis has to be split for a view to be an index; the kernel is then planned again."""

    def __init__(self, axis: Axis, inner: Extent) -> None:
        super().__init__(f"{axis.extent} into … × {inner}")
        self.axis, self.inner = axis, inner


class NotIndexableError(Exception):
    """A view that cannot be an index: its operand has to be in memory, where torch views it."""

    def __init__(self, value: str) -> None:
        super().__init__(value)
        self.value = value


@dataclass(slots=True)
class ExpressionLowering:
    """Builder of one kernel's expressions, which collects the loads."""

    program: GraphProgram
    """The reference."""
    stored: frozenset[str]
    """Names of operations whose result is in memory."""
    scalars: Mapping[str, Index] = field(default_factory=dict)
    """Reductions that this kernel holds in registers, with their index."""
    cols: tuple[Axis, ...] = ()
    """Axes that the kernel reduces; a register holds the position along them."""
    accesses: dict[tuple[str, Index], OperandAccess] = field(default_factory=dict)
    """Loads, by value and index."""
    counts: dict[Extent, str] = field(default_factory=dict)
    """Numbers made of extents, with their names in the kernel."""
    _known: dict[tuple[str, Index, bool], Expr] = field(default_factory=dict)

    def expr(self, name: str, index: Index, *, stepwise: bool = False) -> Expr:
        """Build the expression of the value `name` at `index`.

        With `stepwise`, half-precision values are rounded after every operation, as in the reference;
        otherwise only stored values are rounded, once.

        Raises SplitNeededError, NotIndexableError, or Declined for an operation without a rule.
        """
        key = (name, index, stepwise)
        known = self._known.get(key)
        if known is None:
            known = self._lower(name, index, stepwise=stepwise)
            if stepwise and name not in self.program.buffers:
                known = rounded(known, self.program.dtype(name))
            self._known[key] = known
        return known

    def _lower(self, name: str, index: Index, *, stepwise: bool) -> Expr:
        if name in self.scalars and self.scalars[name] == index:
            return Leaf(name, kind_of(self.program.dtype(name)))
        if name in self.program.buffers or name in self.stored or self.program.ops[name].reduction:
            return self._load(name, index)
        op = self.program.ops[name]
        if op.op == "fill":
            return self._filled(op)
        if op.op == "place":
            return self._place(op, index)
        if op.op.startswith("host_view"):
            raise NotIndexableError(name)
        if op.op in ("view", "permute", "expand"):
            source = op.args[0]
            assert isinstance(source, Name)
            return self.expr(source.name, self._viewed(op, source, index), stepwise=stepwise)
        # Below a discontinuous or wide result, operands round as in the reference.
        stepwise = stepwise or op.dtype in ("float32", "float64") or op.op in _DISCONTINUOUS
        args = [self._argument(arg, op, index, stepwise=stepwise) for arg in op.args]
        kwargs = {key: self._argument(value, op, index, stepwise=stepwise) for key, value in op.kwargs}
        try:
            if op.op == "part":
                return pointwise("clone", args, {}, kind_of(op.dtype), op.dtype)
            return pointwise(op.op, args, kwargs, kind_of(op.dtype), op.dtype)
        except UnsupportedOperationError as problem:
            raise Declined(str(problem)) from problem

    def element(self, op: Op, index: Index) -> Expr:
        """Build the element that a reduction adds at `index`."""
        source = op.args[0]
        assert isinstance(source, Name)
        return self.expr(source.name, index, stepwise=op.reduction.startswith("arg"))

    def _load(self, name: str, index: Index) -> Expr:
        access = self.accesses.get((name, index))
        if access is None:
            uses = sum(1 for value, _ in self.accesses if value == name)
            access = OperandAccess(name, index, f"{name}_{uses + 1}" if uses else name)
            self.accesses[name, index] = access
        return Leaf(access.register, kind_of(self.program.dtype(name)))

    def _filled(self, op: Op) -> Expr:
        value, kind = op.args[0], kind_of(op.dtype)
        if isinstance(value, Count):
            return cast(self._count(value), kind)
        if isinstance(value, bool | int | float):
            return number(value, kind)
        raise Declined(f"the offline author does not fill a tensor with {value!r}")

    def _place(self, op: Op, index: Index) -> Expr:
        if index[op.dims[0]] != self.cols:
            raise Declined("the offline author writes an element by its place only along a reduced dimension")
        return cast(Leaf(COLUMN, ValueType.I32), kind_of(op.dtype))

    def _argument(self, value: Operand, op: Op, index: Index, *, stepwise: bool) -> object:
        """Convert a tensor operand to an expression and a count to a register; return others unchanged."""
        if isinstance(value, Name):
            return self.expr(value.name, self._broadcast(value, op, index), stepwise=stepwise)
        return self._count(value) if isinstance(value, Count) else value

    def _count(self, value: Count) -> Expr:
        if value.extent == ONE:
            return number(1, ValueType.F32)
        return Leaf(self.counts.setdefault(value.extent, f"count{len(self.counts) or ''}"), ValueType.F32)

    def _broadcast(self, operand: Name, op: Op, index: Index) -> Index:
        """Index of an operand of a point-wise operation; shapes align at the last dimension, as in torch."""
        shape = self.program.shape(operand.name)
        aligned = index[len(op.shape) - len(shape) :]
        return tuple(() if extent.is_one else axes for extent, axes in zip(shape, aligned, strict=True))

    def _viewed(self, op: Op, source: Name, index: Index) -> Index:
        """Index of the source of a view."""
        shape = self.program.shape(source.name)
        if op.op == "permute":
            inverse = {dim: at for at, dim in enumerate(op.dims)}
            return tuple(index[inverse[dim]] for dim in range(len(shape)))
        if op.op == "expand":
            return self._broadcast(source, op, index)
        try:
            return regroup(tuple(axis for dim in index for axis in dim), shape)
        except ValueError:
            raise NotIndexableError(op.name) from None


def regroup(axes: tuple[Axis, ...], shape: Shape) -> Index:
    """Distribute the axes that run over a tensor to the dimensions of another shape of it.

    Raises SplitNeededError where a dimension ends inside an axis, and ValueError where the two shapes have no
    common refinement.
    """
    remaining = [axis for axis in axes if not axis.extent.is_one]
    index: list[tuple[Axis, ...]] = []
    # From the fastest dimension up; an axis is taken whole while the product still divides the extent.
    for extent in reversed(shape):
        taken: list[Axis] = []
        covered = ONE
        while covered != extent:
            if not remaining:
                raise ValueError(shape)
            axis = remaining.pop()
            reach = covered * axis.extent
            if reach.divides(extent):
                taken.insert(0, axis)
                covered = reach
                continue
            if not covered.divides(extent):
                raise ValueError(shape)
            inner = extent // covered
            if inner.is_one or not inner.divides(axis.extent):
                raise ValueError(shape)
            raise SplitNeededError(axis, inner)
        index.insert(0, tuple(taken))
    if remaining:
        raise ValueError(shape)
    return tuple(index)
