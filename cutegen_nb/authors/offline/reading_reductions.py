"""Reductions of ATen in the offline author's few: a mean is a sum divided, a variance two of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.authors.offline.ir import ONE, Buffer, Count, Name, Op, Operand, Shape, Values, elements
from cutegen_nb.core.errors import Declined


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One node of the graph, its operands read."""

    op: str
    """Short name."""
    spelled: str
    """The operator as the graph has it, for messages."""
    name: str
    """Of the node."""
    args: tuple[Operand, ...]
    """Positional operands."""
    kwargs: tuple[tuple[str, Operand], ...]
    """Keyword operands that say what is computed."""
    shape: Shape
    """Of the first output."""
    dtypes: tuple[str, ...]
    """Of each output."""

    def given(self, at: int, name: str) -> Operand:
        """An operand by position or keyword; None where it is not given."""
        return self.args[at] if len(self.args) > at else dict(self.kwargs).get(name)

    @property
    def source(self) -> str:
        """Name of the tensor that is reduced."""
        source = self.args[0]
        if not isinstance(source, Name):
            raise Declined(f"the offline author does not write {self.spelled} of a number")
        return source.name


class Building(Values):
    """Operations so far, by name; equal ones are kept once."""

    def __init__(self, identifier: Callable[[str], str]) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.ops: dict[str, Op] = {}
        self._identifier = identifier
        self._known: dict[object, str] = {}

    def fresh(self, name: str) -> str:
        """`name`, or the first like it that is not taken."""
        while name in self.buffers or name in self.ops:
            name += "_"
        return name

    def add(self, op: str, args: tuple[Operand, ...], shape: Shape, dtype: str, **more: object) -> str:
        """Append an operation and return its name, or that of an equal one."""
        wanted = str(more.pop("name", "") or f"{op.removeprefix('reduce:')}_{len(self.ops)}")
        # A variance computes a mean of its own; one is enough.
        key = (op, args, shape, dtype, tuple(sorted(more.items())))
        if key in self._known:
            return self._known[key]
        name = self._known[key] = self.fresh(self._identifier(wanted))
        self.ops[name] = Op(name=name, op=op, args=args, shape=shape, dtype=dtype, **more)  # type: ignore[arg-type]
        return name

    def of(self, call: Call, op: str, args: tuple[Operand, ...], **more: object) -> str:
        """Append an operation with the name, shape and dtype of a call."""
        return self.add(op, args, call.shape, call.dtypes[0], name=call.name, **more)

    def reduced(self, how: str, source: str, dims: tuple[int, ...], dtype: str, name: str) -> str:
        """Append a reduction that keeps the reduced dimensions at 1."""
        shape = tuple(ONE if at in dims else extent for at, extent in enumerate(self.shape(source)))
        return self.add(f"reduce:{how}", (Name(source),), shape, dtype, name=name, dims=dims)


def _dims(given: Operand, rank: int) -> tuple[int, ...]:
    if given is None or given == ():
        return tuple(range(rank))
    dims = given if isinstance(given, tuple) else (given,)
    return tuple(sorted(int(dim) % rank for dim in dims)) if rank else ()


def _shaped(building: Building, name: str, call: Call) -> str:
    """A reduction's result in the shape of the call, which may have dropped the dimensions of size 1."""
    if building.shape(name) == call.shape:
        return name
    return building.add("view", (Name(name),), call.shape, building.dtype(name))


_HOW = {"amax": "max", "amin": "min"}


def _plain(building: Building, call: Call) -> tuple[str, ...]:
    how = _HOW.get(call.op, call.op)
    dtype = call.dtypes[0]
    if how in ("sum", "prod") and "float" not in dtype and dtype not in ("int64", "int32"):
        raise Declined(f"the offline author does not write {call.spelled} to {dtype}")
    dims = _dims(call.given(1, "dim"), len(building.shape(call.source)))
    return (_shaped(building, building.reduced(how, call.source, dims, dtype, call.name), call),)


def _place(building: Building, call: Call) -> tuple[str, ...]:
    source, dim = call.source, call.given(1, "dim")
    if dim is None:
        flat = (elements(building.shape(source)),)
        source = building.add("view", (Name(source),), flat, building.dtype(source))
        dim = 0
    dims = _dims(dim, len(building.shape(source)))
    return (_shaped(building, building.reduced(call.op, source, dims, "int64", call.name), call),)


def _extremum(building: Building, call: Call) -> tuple[str, ...]:
    """``max`` and ``min``: of everything, or values and places along a dimension."""
    dims = _dims(call.given(1, "dim"), len(building.shape(call.source)))
    values = building.reduced(call.op, call.source, dims, call.dtypes[0], call.name)
    if len(call.dtypes) == 1:
        return (_shaped(building, values, call),)
    places = building.reduced(f"arg{call.op}", call.source, dims, "int64", f"{call.name}_place")
    return _shaped(building, values, call), _shaped(building, places, call)


def _mean_of(building: Building, source: str, dims: tuple[int, ...], dtype: str, name: str) -> str:
    shape = building.shape(source)
    total = building.reduced("sum", source, dims, dtype, f"{name}_sum")
    count = Count(elements([shape[dim] for dim in dims]))
    return building.add("div", (Name(total), count), building.shape(total), dtype, name=name)


def _mean(building: Building, call: Call) -> tuple[str, ...]:
    dims = _dims(call.given(1, "dim"), len(building.shape(call.source)))
    return (_shaped(building, _mean_of(building, call.source, dims, call.dtypes[0], call.name), call),)


def _variance(building: Building, call: Call) -> tuple[str, ...]:
    source, dtype = call.source, call.dtypes[0]
    shape = building.shape(source)
    dims = _dims(call.given(1, "dim"), len(shape))
    # ``correction`` counts; ``unbiased``, a flag in older overloads, means 1 or 0.
    given = call.given(2, "correction")
    correction = int(given) if isinstance(given, int | float) else 1
    mean = _mean_of(building, source, dims, dtype, f"{call.name}_mean")
    centred = building.add("sub", (Name(source), Name(mean)), shape, dtype)
    squares = building.add("square", (Name(centred),), shape, dtype)
    total = building.reduced("sum", squares, dims, dtype, f"{call.name}_sum")
    count = building.add("fill", (Count(elements([shape[dim] for dim in dims])),), (), dtype)
    if correction:
        count = building.add("sub", (Name(count), correction), (), dtype)
    result = building.add("div", (Name(total), Name(count)), building.shape(total), dtype)
    if call.op == "std":
        result = building.add("sqrt", (Name(result),), building.shape(total), dtype)
    return (_shaped(building, result, call),)


def _gather(building: Building, call: Call) -> tuple[str, ...]:
    """One element a row by its place, as the sum over a row in which all others count as zero."""
    source, index = call.source, call.args[2]
    shape = building.shape(source)
    dim = int(call.args[1]) % max(len(shape), 1)  # type: ignore[call-overload]
    expected = tuple(ONE if at == dim else extent for at, extent in enumerate(shape))
    if not isinstance(index, Name) or building.shape(index.name) != expected:
        raise Declined(f"the offline author writes {call.spelled} only of one element a row")
    along = tuple(extent if at == dim else ONE for at, extent in enumerate(shape))
    place = building.add("place", (), along, "int64", dims=(dim,))
    chosen = building.add("eq", (Name(place), index), shape, "bool")
    kept = building.add("where", (Name(chosen), Name(source), 0), shape, call.dtypes[0])
    return (building.reduced("sum", kept, (dim,), call.dtypes[0], call.name),)


REDUCERS: dict[str, Callable[[Building, Call], tuple[str, ...]]] = {
    **dict.fromkeys(("sum", "prod", "amax", "amin", "any", "all"), _plain),
    **dict.fromkeys(("argmax", "argmin"), _place),
    **dict.fromkeys(("max", "min"), _extremum),
    **dict.fromkeys(("var", "std"), _variance),
    "mean": _mean,
    "gather": _gather,
}
"""How each reduction is read, by ATen's short name."""
