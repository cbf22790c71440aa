"""Values as expressions of a kernel's index: what has to be loaded where, and what is computed from it.

A kernel runs over *axes*. Every value is asked for at an index, which gives for each of its dimensions
the axes that run along it (none for a dimension of size 1).  Views and permutes only rewrite the index,
so nothing is ever copied for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cutegen_nb.authors.offline.expressions import Expr, Kind, Leaf, cast, kind_of, number, rounded
from cutegen_nb.authors.offline.ir import ONE, Count, Extent, Name, Op, Operand, Program, Shape
from cutegen_nb.authors.offline.pointwise import UnsupportedOperationError, pointwise
from cutegen_nb.core.errors import Declined

_JUMPS = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "floor", "ceil", "trunc", "round", "sign", "sgn", "fmod", "remainder",
    "isnan", "reduce:argmax", "reduce:argmin",
})  # fmt: skip
"""Operations whose result may change by much when an operand changes in its last digit, so that the
operand has to be rounded where the reference rounds it. The same goes for results wider than it."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One loop of a kernel."""

    extent: Extent
    """Trip count."""


COLUMN = "col"
"""Register that counts along a row."""

Index = tuple[tuple[Axis, ...], ...]
"""For each dimension of a value, the axes that run along it, slowest first."""


@dataclass(frozen=True, slots=True)
class Access:
    """A value in memory, read or written at an index."""

    value: str
    """Name of a buffer, a temporary or an output."""
    index: Index
    """Where."""
    register: str
    """Name of the element in the kernel."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order of memory, slowest first."""
        return tuple(axis for dim in self.index for axis in dim)


class SplitNeededError(Exception):
    """An axis has to be two for a view to be an index; the kernel is planned again with it split."""

    def __init__(self, axis: Axis, inner: Extent) -> None:
        super().__init__(f"{axis.extent} into … × {inner}")
        self.axis, self.inner = axis, inner


class NotIndexableError(Exception):
    """A view that is no rewriting of the index: its operand has to be in memory, and torch views it there."""

    def __init__(self, value: str) -> None:
        super().__init__(value)
        self.value = value


@dataclass(slots=True)
class Lowering:
    """Expressions of one kernel; collects what it reads."""

    program: Program
    """The reference."""
    stored: frozenset[str]
    """Names of operations whose result is in memory."""
    scalars: Mapping[str, Index] = field(default_factory=dict)
    """Reductions this kernel holds in registers, with the index at which it does."""
    cols: tuple[Axis, ...] = ()
    """The axes the kernel reduces; the place along them has a register."""
    accesses: dict[tuple[str, Index], Access] = field(default_factory=dict)
    """What is read, by value and index."""
    counts: dict[Extent, str] = field(default_factory=dict)
    """Numbers made of extents, with their names in the kernel."""
    _known: dict[tuple[str, Index, bool], Expr] = field(default_factory=dict)

    def expr(self, name: str, index: Index, *, stepwise: bool = False) -> Expr:
        """The value `name` at `index`.

        With `stepwise`, half-precision values are rounded after every operation, as the reference's are;
        otherwise only what is stored is rounded, once.

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
        stepwise = stepwise or op.dtype in ("float32", "float64") or op.op in _JUMPS
        args = [self._argument(arg, op, index, stepwise=stepwise) for arg in op.args]
        kwargs = {key: self._argument(value, op, index, stepwise=stepwise) for key, value in op.kwargs}
        try:
            return pointwise(op.op, args, kwargs, kind_of(op.dtype), op.dtype)
        except UnsupportedOperationError as problem:
            raise Declined(str(problem)) from problem

    def element(self, op: Op, index: Index) -> Expr:
        """What a reduction takes in at `index`."""
        source = op.args[0]
        assert isinstance(source, Name)
        return self.expr(source.name, index, stepwise=op.reduction.startswith("arg"))

    def _load(self, name: str, index: Index) -> Expr:
        access = self.accesses.get((name, index))
        if access is None:
            uses = sum(1 for value, _ in self.accesses if value == name)
            access = Access(name, index, f"{name}_{uses + 1}" if uses else name)
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
        return cast(Leaf(COLUMN, Kind.I32), kind_of(op.dtype))

    def _argument(self, value: Operand, op: Op, index: Index, *, stepwise: bool) -> object:
        """A tensor operand as an expression, a count as a register, anything else as it is."""
        if isinstance(value, Name):
            return self.expr(value.name, self._broadcast(value, op, index), stepwise=stepwise)
        return self._count(value) if isinstance(value, Count) else value

    def _count(self, value: Count) -> Expr:
        if value.extent == ONE:
            return number(1, Kind.F32)
        return Leaf(self.counts.setdefault(value.extent, f"count{len(self.counts) or ''}"), Kind.F32)

    def _broadcast(self, operand: Name, op: Op, index: Index) -> Index:
        """The index of an operand of a point-wise operation, aligned at the last dimension."""
        shape = self.program.shape(operand.name)
        aligned = index[len(op.shape) - len(shape) :]
        return tuple(() if extent.is_one else axes for extent, axes in zip(shape, aligned, strict=True))

    def _viewed(self, op: Op, source: Name, index: Index) -> Index:
        """The index of what a view is of."""
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
    """Give the axes that run over a tensor to the dimensions of another shape of it.

    Raises SplitNeededError where a dimension ends inside an axis, and ValueError where the two shapes
    have no common refinement.
    """
    remaining = [axis for axis in axes if not axis.extent.is_one]
    index: list[tuple[Axis, ...]] = []
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
