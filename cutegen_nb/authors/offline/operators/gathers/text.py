"""Text of a gather's kernel: values of the templates."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap, Gather, IndexedAxis
from cutegen_nb.authors.offline.operators.gathers.settled import output_extents, way_of
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorTail, OperatorText
from cutegen_nb.authors.offline.templates import joined, render, signature
from cutegen_nb.core.errors import Declined

_FLOATS = frozenset({"float32", "float16", "bfloat16"})
"""dtypes of results that a tail may finish in float32."""


def gather_text(call: OperatorCall, gather: Gather, template: str, *, in_flight: int = 1) -> OperatorText:
    """Write the kernel by one of the templates. Raises Declined for a tail of another dtype than a float."""
    if call.tail and call.dtype not in _FLOATS:
        raise Declined(f"the offline author fuses no work into a gather of {call.dtype}")
    upper = call.name.upper()
    constants = {f"{upper}_THREADS": "256"}
    if template != "element":
        constants[f"{upper}_IN_FLIGHT"] = f"{in_flight}  # loads of a thread before its first store"
    source = render(
        f"gathers/{template}", in_flight=in_flight > 1, vectors=template == "vectors", **_values(call, gather)
    )
    imports = ("import math",) if template == "vectors" else ()
    return OperatorText(source=source, constants=constants, imports=imports)


def _values(call: OperatorCall, gather: Gather) -> dict[str, object]:
    rank, name = gather.rank, call.name
    outputs = [f"o{dim}" for dim in range(rank)]
    places = [_place(source, at) for at, source in enumerate(gather.sources)]
    last = outputs[-1]
    rows = [line for line in places if line and last not in line]
    columns = [line for line in places if line and last in line]
    tail = call.tail or OperatorTail(extras=(), lines=(), value="acc")
    extras = [extra.name for extra in tail.extras]
    indices = [f"mI{at}" for at in range(1, len(call.operands))]
    tensors = ["mX", *indices, "mY", *(f"m_{extra}" for extra in extras)]
    names = [operand.name for operand in call.operands]
    beside = "".join(f", m_{extra}" for extra in extras)
    return {
        **signature(name, tensors, ()),
        "upper": name.upper(),
        "rank": rank,
        "outputs": outputs,
        "inputs": [_input(source, at) for at, source in enumerate(gather.sources)],
        "inside": _inside(gather),
        "fill": _fill(gather, call.dtype),
        "decode": joined(_decoded(outputs, 0)),
        "decode_rows": joined(_decoded(outputs[:-1], 0)),
        "places": joined([line for line in places if line]),
        "row_places": joined(rows),
        "column_places": joined(columns),
        "extras": extras,
        "tail": call.tail is not None,
        "tail_lines": tail.lines,
        "value": tail.value,
        "extra_params": "".join(f", m_{extra}: cute.Tensor" for extra in extras),
        "finished": _finished(name, outputs, beside, whole=call.tail is not None),
        "x": names[0],
        "names": [*names, *extras],
        "beside": "".join(f"{item}, " for item in names[1:]),
        "extra_names": "".join(f", {extra}" for extra in extras),
        "shape": [text.format(*names) for text in output_extents(gather)],
        "what": _what(gather),
    }


def _finished(name: str, outputs: list[str], beside: str, *, whole: bool) -> Callable[[str, str], str]:
    """Expression of the element to store, from the element fetched and the last coordinate."""

    def finished(value: str, last: str) -> str:
        if not whole:
            return value
        at = ", ".join([*outputs[:-1], last])
        return f"{name}_finish({value}.to(cutlass.Float32), {at}{beside}).to(mY.element_type)"

    return finished


def _decoded(outputs: list[str], first: int) -> list[str]:
    """Statements that compute coordinates of the output from `left`, the last one fastest."""
    if not outputs:
        return []
    lines = [
        f"{outputs[dim]}, left = left % mY.shape[{dim}], left // mY.shape[{dim}]"
        for dim in range(len(outputs) - 1, first, -1)
    ]
    return [*lines, f"{outputs[first]} = left"]


def _place(source: AxisMap | IndexedAxis | tuple[AxisMap, ...], at: int) -> str:
    """Statement that computes a coordinate of the input; empty where it is the output's own."""
    extent = f"mX.shape[{at}]"
    if isinstance(source, IndexedAxis):
        index = ", ".join("0" if dim is None else f"o{dim}" for dim in source.dims)
        read = f"x{at} = whole(mI{source.operand}[{index}])"
        wrap = f"\nx{at} = x{at} + {extent} if x{at} < 0 else x{at}"
        return read + (wrap if source.wraps else "")
    way = way_of(source)
    return "" if way.same else f"x{at} = {way.coordinate(f'o{way.dim}', extent)}"


def _input(source: object, at: int) -> str:
    if isinstance(source, tuple):
        way = way_of(source)
        return f"o{way.dim}" if way.same else f"x{at}"
    return f"x{at}"


def _inside(gather: Gather) -> str:
    """Condition that the place lies in the input; empty where it always does."""
    tests = []
    for at, source in enumerate(gather.sources):
        if isinstance(source, tuple) and way_of(source).may_miss:
            way = way_of(source)
            tests += [f"x{at} >= 0"] if way.number > 0 else []
            tests += [f"{_input(source, at)} < mX.shape[{at}]"] if way.grown > way.number else []
    return " and ".join(tests)


def _fill(gather: Gather, dtype: str) -> str:
    """Padding's value as an expression of the dtype."""
    if "float" not in dtype:
        return str(int(gather.fill))
    value = float(gather.fill)
    return repr(value) if value - value == 0 else f'float("{value}")'


def _what(gather: Gather) -> str:
    """Phrase for the docstring of the function."""
    if any(isinstance(source, IndexedAxis) for source in gather.sources):
        return "the elements that the indices name"
    return "the padded input" if _inside(gather) else "the input's elements in their new places"
