"""ATen's reductions in terms of a few primitives: a mean is a sum divided, a variance two sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.authors.offline.graph.ir import ONE, Buffer, Count, Name, Op, Operand, Shape, Values, elements
from cutegen_nb.core.errors import Declined


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenCall:
    """One ATen call of the graph, with converted operands."""

    op: str
    """Short name: ``sum``."""
    spelled: str
    """Full operator name of the graph, for messages."""
    name: str
    """Name of the node."""
    args: tuple[Operand, ...]
    """Positional operands."""
    kwargs: tuple[tuple[str, Operand], ...]
    """Keyword operands that change the result."""
    shape: Shape
    """Extents of the first output."""
    dtypes: tuple[str, ...]
    """dtype of each output."""

    def given(self, at: int, name: str) -> Operand:
        """Return an operand by position or keyword; None where it is not given."""
        return self.args[at] if len(self.args) > at else dict(self.kwargs).get(name)

    @property
    def source(self) -> str:
        """Name of the reduced tensor. Raises Declined for a number."""
        source = self.args[0]
        if not isinstance(source, Name):
            raise Declined(f"the offline author does not write {self.spelled} of a number")
        return source.name


class Building(Values):
    """Builder of a program; equal operations are kept once."""

    def __init__(self, identifier: Callable[[str], str], taken: frozenset[str]) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.ops: dict[str, Op] = {}
        self._identifier, self._taken = identifier, taken
        self._known: dict[object, str] = {}

    def fresh(self, name: str) -> str:
        """Return `name`, with underscores appended until no value has it."""
        while name in self.buffers or name in self.ops or name in self._taken:
            name += "_"
        return name

    def add(self, op: str, args: tuple[Operand, ...], shape: Shape, dtype: str, **more: object) -> str:
        """Append an operation and return its name, or the name of an equal one."""
        wanted = str(more.pop("name", "") or f"{op.removeprefix('reduce:')}_{len(self.ops)}")
        # Common subexpressions: a variance computes a mean that the graph may have already.
        key = (op, args, shape, dtype, tuple(sorted(more.items())))
        if key in self._known:
            return self._known[key]
        name = self._known[key] = self.fresh(self._identifier(wanted))
        self.ops[name] = Op(name=name, op=op, args=args, shape=shape, dtype=dtype, **more)  # type: ignore[arg-type]
        return name

    def of(self, call: AtenCall, op: str, args: tuple[Operand, ...], **more: object) -> str:
        """Append an operation with the name, shape and dtype of a call."""
        return self.add(op, args, call.shape, call.dtypes[0], name=call.name, **more)

    def reduced(self, how: str, source: str, dims: tuple[int, ...], dtype: str, name: str) -> str:
        """Append a reduction that keeps the reduced dimensions at extent 1."""
        shape = tuple(ONE if at in dims else extent for at, extent in enumerate(self.shape(source)))
        return self.add(f"reduce:{how}", (Name(source),), shape, dtype, name=name, dims=dims)


def _dims(given: Operand, rank: int) -> tuple[int, ...]:
    if given is None or given == ():
        return tuple(range(rank))
    dims = given if isinstance(given, tuple) else (given,)
    return tuple(sorted(int(dim) % rank for dim in dims)) if rank else ()


def _shaped(building: Building, name: str, call: AtenCall) -> str:
    """Reshape a reduction's result to the shape of the call, which may lack the reduced dimensions."""
    if building.shape(name) == call.shape:
        return name
    return building.add("view", (Name(name),), call.shape, building.dtype(name))


_HOW = {"amax": "max", "amin": "min"}


def _plain(building: Building, call: AtenCall) -> tuple[str, ...]:
    how = _HOW.get(call.op, call.op)
    dtype = call.dtypes[0]
    if how in ("sum", "prod") and "float" not in dtype and dtype not in ("int64", "int32"):
        raise Declined(f"the offline author does not write {call.spelled} to {dtype}")
    dims = _dims(call.given(1, "dim"), len(building.shape(call.source)))
    return (_shaped(building, building.reduced(how, call.source, dims, dtype, call.name), call),)


def _place(building: Building, call: AtenCall) -> tuple[str, ...]:
    source, dim = call.source, call.given(1, "dim")
    # Without a dimension, argmax and argmin index the flattened tensor.
    if dim is None:
        flat = (elements(building.shape(source)),)
        source = building.add("view", (Name(source),), flat, building.dtype(source))
        dim = 0
    dims = _dims(dim, len(building.shape(source)))
    return (_shaped(building, building.reduced(call.op, source, dims, "int64", call.name), call),)


def _extremum(building: Building, call: AtenCall) -> tuple[str, ...]:
    """Convert ``max`` and ``min``: of all elements, or values and indices along a dimension."""
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


def _mean(building: Building, call: AtenCall) -> tuple[str, ...]:
    dims = _dims(call.given(1, "dim"), len(building.shape(call.source)))
    return (_shaped(building, _mean_of(building, call.source, dims, call.dtypes[0], call.name), call),)


def _variance(building: Building, call: AtenCall) -> tuple[str, ...]:
    source, dtype = call.source, call.dtypes[0]
    shape = building.shape(source)
    dims = _dims(call.given(1, "dim"), len(shape))
    # var = Σ(x − mean)² / (n − correction). The flag ``unbiased`` of older overloads means 1 or 0.
    given = call.given(2, "correction")
    correction = int(given) if isinstance(given, int | float) else 1
    mean = _mean_of(building, source, dims, dtype, f"{call.name}_mean")
    centred = building.add("sub", (Name(source), Name(mean)), shape, dtype)
    squares = building.add("square", (Name(centred),), shape, dtype)
    total = building.reduced("sum", squares, dims, dtype, f"{call.name}_sum")
    # The divisor is a tensor of rank 0, because n and n − correction depend on the size.
    count = building.add("fill", (Count(elements([shape[dim] for dim in dims])),), (), dtype)
    if correction:
        count = building.add("sub", (Name(count), correction), (), dtype)
    result = building.add("div", (Name(total), Name(count)), building.shape(total), dtype)
    if call.op == "std":
        result = building.add("sqrt", (Name(result),), building.shape(total), dtype)
    return (_shaped(building, result, call),)


def _gather(building: Building, call: AtenCall) -> tuple[str, ...]:
    """Convert ``gather`` of one element a row to a sum over the row in which all other elements are zero."""
    source, index = call.source, call.args[2]
    shape = building.shape(source)
    dim = int(call.args[1]) % max(len(shape), 1)  # type: ignore[call-overload]
    expected = tuple(ONE if at == dim else extent for at, extent in enumerate(shape))
    if not isinstance(index, Name) or building.shape(index.name) != expected:
        raise Declined(
            f"the offline author writes {call.spelled} only where each row takes one element; this index "
            "has another shape"
        )
    along = tuple(extent if at == dim else ONE for at, extent in enumerate(shape))
    place = building.add("place", (), along, "int64", dims=(dim,))
    chosen = building.add("eq", (Name(place), index), shape, "bool")
    kept = building.add("where", (Name(chosen), Name(source), 0), shape, call.dtypes[0])
    return (building.reduced("sum", kept, (dim,), call.dtypes[0], call.name),)


REDUCERS: dict[str, Callable[[Building, AtenCall], tuple[str, ...]]] = {
    **dict.fromkeys(("sum", "prod", "amax", "amin", "any", "all"), _plain),
    **dict.fromkeys(("argmax", "argmin"), _place),
    **dict.fromkeys(("max", "min"), _extremum),
    **dict.fromkeys(("var", "std"), _variance),
    "mean": _mean,
    "gather": _gather,
}
"""Conversion of each reduction, by ATen's short name."""
