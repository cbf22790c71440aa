"""Tensors of positions: ``arange``, and the triangles that compare the positions of rows and columns."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.authors.offline.graph.ir import ONE, Extent, HostCall, Name
from cutegen_nb.authors.offline.graph.reductions import AtenCall, Building
from cutegen_nb.core.errors import Declined


def _numbered(building: Building, call: AtenCall) -> tuple[str, ...]:
    """Convert ``arange``: the host counts from 0, kernels do the rest. Raises Declined.

    Positions are kept in 32 bits, so that four of them fit a vector as four float32 do.
    """
    given = [value for value in call.args if value is not None]
    start = given[0] if len(given) > 1 else 0
    step = given[2] if len(given) > 2 else 1  # noqa: PLR2004 - (start, end, step)
    if not isinstance(start, int | float) or not isinstance(step, int | float):
        raise Declined(f"{call.spelled} begins at a number that depends on the problem's size")
    name = _positions(building, call.shape[0])
    steps = [("mul", step)] if step != 1 else []
    steps += [("add", start)] if start else []
    dtype = call.dtypes[0]
    name = building.add("_to_copy", (Name(name),), call.shape, dtype, name=call.name)
    for op, number in steps:
        name = building.add(op, (Name(name), number), call.shape, dtype)
    return (name,)


def _triangle(building: Building, call: AtenCall) -> tuple[str, ...]:
    """Convert ``tril`` and ``triu``: elements on the other side of a diagonal are zero. Raises Declined."""
    diagonal = call.given(1, "diagonal") or 0
    if not isinstance(diagonal, int):
        raise Declined(f"{call.spelled} takes a number that depends on the problem's size")
    rows, columns = call.shape[-2:]
    across = building.add("view", (Name(_positions(building, columns)),), (ONE, columns), "int32")
    down = building.add("view", (Name(_positions(building, rows)),), (rows, ONE), "int32")
    apart = building.add("sub", (Name(across), Name(down)), (rows, columns), "int32")
    side = "le" if call.op == "tril" else "ge"
    kept = building.add(side, (Name(apart), diagonal), (rows, columns), "bool")
    if call.dtypes[0] == "bool":
        return (building.of(call, "logical_and", (call.args[0], Name(kept))),)
    return (building.of(call, "where", (Name(kept), call.args[0], 0)),)


def _positions(building: Building, extent: Extent) -> str:
    """Append the positions 0 … n - 1, which PyTorch makes on the device of the first given tensor."""
    first = next(iter(building.buffers))
    call = HostCall(text="torch.arange({1}, dtype=torch.int32, device={0}.device)", extents=(extent,))
    return building.add("arange", (Name(first),), (extent,), "int32", name="positions", call=call)


POSITIONED: dict[str, Callable[[Building, AtenCall], tuple[str, ...]]] = {
    "arange": _numbered,
    "tril": _triangle,
    "triu": _triangle,
}
"""Conversion of each operation on positions, by ATen's short name."""
