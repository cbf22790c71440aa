"""Element-wise work moved in front of a concatenation of equal parts.

``q * cos + cat([-b, a]) * sin`` with the halves a and b of q is the concatenation of two sums of halves: one
kernel then reads q once and stores both halves, and the tensor in between is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.authors.offline.expressions.pointwise import is_pointwise
from cutegen_nb.authors.offline.graph.ir import Count, Extent, GraphProgram, Name, Op, Operand, Shape, Values


def bound(extent: Extent) -> Operand:
    """Bound of a slice: a number where it is the same at both sizes."""
    return extent.full if extent.full == extent.scaled else Count(extent)


def with_joins_last(program: GraphProgram) -> GraphProgram:
    """Move element-wise operations in front of each concatenation whose users all are such operations."""
    moving = _Moving(program)
    for op in program.ops.values():
        moving.take(op)
    return replace(program, ops=moving.ops)


class _UnsliceableError(Exception):
    """A value of which no slice is in memory or can be computed."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Range of a dimension, counted from the last one: a smaller operand has it at another position."""

    from_last: int
    begin: Extent
    end: Extent


class _Moving(Values):
    def __init__(self, program: GraphProgram) -> None:
        self.program = program
        self.buffers = program.buffers
        self.ops: dict[str, Op] = {}
        self.slices: dict[tuple[str, _Range], str] = {}
        self.users: dict[str, list[Op]] = {}
        for op in program.ops.values():
            for name in op.operands:
                self.users.setdefault(name, []).append(op)

    def take(self, op: Op) -> None:
        """Append an operation, or a concatenation of its parts."""
        joined = [self.ops[name] for name in op.operands if name in self.ops and self._moves(self.ops[name])]
        before = dict(self.ops), dict(self.slices)
        try:
            if joined and is_pointwise(op.op):
                self._move(op, joined[0])
                return
        except _UnsliceableError:
            self.ops, self.slices = before
        self.ops[op.name] = op

    def _moves(self, op: Op) -> bool:
        """Return whether a concatenation has equal parts, and only element-wise users of its own shape."""
        if op.op != "cat" or op.name in self.program.outputs:
            return False
        parts = [self.ops[name] for name in op.operands]
        alike = len({part.shape for part in parts}) == 1
        kept = all(self.dtype(_source(part)) == op.dtype for part in parts)
        users = self.users.get(op.name, [])
        return alike and kept and all(is_pointwise(user.op) and user.shape == op.shape for user in users)

    def _move(self, op: Op, whole: Op) -> None:
        dim = whole.dims[0]
        made: list[Name] = []
        begin = Extent(0, 0)
        for position, name in enumerate(whole.operands):
            end = begin + self.ops[name].shape[dim]
            place = _Range(len(op.shape) - dim, begin, end)
            value = self._part(op, place, f"{op.name}_{position}")
            part = self._fresh(f"{op.name}_part{position}")
            shape = self.shape(value)
            more = (("of", op.name), ("position", position))
            self.ops[part] = Op(
                name=part, op="part", args=(Name(value),), kwargs=more, shape=shape, dtype=op.dtype
            )
            made.append(Name(part))
            begin = end
        self.ops[op.name] = replace(op, op="cat", args=tuple(made), kwargs=(), dims=(dim,))

    def _part(self, op: Op, place: _Range, name: str) -> str:
        """Append a point-wise operation on a range of its operands."""

        def part(value: Operand) -> Operand:
            return Name(self._slice(value.name, place)) if isinstance(value, Name) else value

        made = replace(
            op,
            name=self._fresh(name),
            args=tuple(map(part, op.args)),
            kwargs=tuple((key, part(value)) for key, value in op.kwargs),
            shape=_cut(op.shape, place),
        )
        self.ops[made.name] = made
        return made.name

    def _slice(self, name: str, place: _Range) -> str:
        """Name of a range of a value. Raises _UnsliceableError."""
        shape = self.shape(name)
        if len(shape) < place.from_last or shape[-place.from_last].is_one:
            return name  # broadcast along the dimension
        known = self.slices.get((name, place))
        if known is None:
            known = self.slices[name, place] = self._sliced(name, place)
        return known

    def _sliced(self, name: str, place: _Range) -> str:
        op = self.ops.get(name)
        if op is not None and op.op == "cat":
            return self._part_of(op, place)
        if op is not None and is_pointwise(op.op) and op.op != "part":
            return self._part(op, place, f"{name}_{place.begin.full}")
        if op is not None and op.op in ("view", "expand"):
            return self._of_view(op, place)
        if op is None or op.call:
            return self._in_memory(name, place)
        raise _UnsliceableError

    def _part_of(self, op: Op, place: _Range) -> str:
        """Name of the part of a concatenation that fills the range."""
        if len(op.shape) - op.dims[0] != place.from_last:
            raise _UnsliceableError
        begin = Extent(0, 0)
        for part in map(self.ops.__getitem__, op.operands):
            end = begin + part.shape[op.dims[0]]
            if (begin, end) == (place.begin, place.end) and self.dtype(_source(part)) == op.dtype:
                return _source(part)
            begin = end
        raise _UnsliceableError

    def _of_view(self, op: Op, place: _Range) -> str:
        """Append the view of a range, where the dimension and those after it are the source's own."""
        source = op.args[0]
        assert isinstance(source, Name)
        last = place.from_last
        if op.op == "view" and self.shape(source.name)[-last:] != op.shape[-last:]:
            raise _UnsliceableError
        within = self._slice(source.name, place)
        made = self._fresh(f"{op.name}_{place.begin.full}")
        self.ops[made] = replace(op, name=made, args=(Name(within),), shape=_cut(op.shape, place))
        return made

    def _in_memory(self, name: str, place: _Range) -> str:
        shape = self.shape(name)
        args = (Name(name), len(shape) - place.from_last, bound(place.begin), bound(place.end), 1)
        for op in self.ops.values():
            if op.op == "host_view:slice" and op.args == args:
                return op.name
        made = self._fresh(f"{name}_{place.begin.full}")
        self.ops[made] = Op(
            name=made, op="host_view:slice", args=args, shape=_cut(shape, place), dtype=self.dtype(name)
        )
        return made

    def _fresh(self, name: str) -> str:
        while name in self.ops or name in self.buffers or name in self.program.ops:
            name += "_"
        return name


def _source(part: Op) -> str:
    source = part.args[0]
    assert isinstance(source, Name)
    return source.name


def _cut(shape: Shape, place: _Range) -> Shape:
    at = len(shape) - place.from_last
    length = Extent(place.end.full - place.begin.full, place.end.scaled - place.begin.scaled)
    return (*shape[:at], length, *shape[at + 1 :])
