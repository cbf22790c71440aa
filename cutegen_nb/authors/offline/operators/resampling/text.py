"""Text of an interpolation's kernel: values of the templates."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorTail, OperatorText
from cutegen_nb.authors.offline.operators.resampling.matching import Interpolation
from cutegen_nb.authors.offline.templates import joined, render, signature
from cutegen_nb.core.errors import Declined

_EXTENTS = ("D", "H", "W")
"""Names of the extents; of fewer dimensions the last ones."""
_AXES = ("z", "y", "x")
"""Names of the output's coordinates."""
_BETWEEN = {"z": "slices", "y": "rows"}
"""Name of what an output lies between, by the coordinate."""
_BILINEAR = 2
"""Dimensions of the interpolation that has a template of its own."""


def interpolation_text(call: OperatorCall, *, rows: bool) -> OperatorText:
    """Write the kernel, a warp for each row or a thread for each element. Raises Declined."""
    full, upper = call.attributes, call.name.upper()
    assert isinstance(full, Interpolation)
    bilinear = len(full.input_size) == _BILINEAR and not full.cubic
    values = _values(call, full, upper) | ({} if bilinear else _taps(call.name, full))
    source = render("resampling/bilinear" if bilinear else "resampling/taps", rows=rows, **values)
    constants = {f"{upper}_THREADS": "256"}
    if rows:
        constants[f"{upper}_IN_FLIGHT"] = "4  # elements of a lane between two tests of the row's end"
    return OperatorText(source=source, constants=constants)


def output_sizes(call: OperatorCall) -> list[str]:
    """Extents of the output as expressions of ``D``, ``H`` and ``W``. Raises Declined."""
    full, scaled = call.attributes, call.scaled_attributes
    assert isinstance(full, Interpolation)
    assert isinstance(scaled, Interpolation)
    if full.antialias:
        raise Declined("the offline author does not write interpolation with antialias=True")
    if (full.align_corners, full.scales) != (scaled.align_corners, scaled.scales):
        raise Declined("the factors of the interpolation depend on the problem's size")
    extents = _EXTENTS[-len(full.input_size) :]
    if full.scales:
        return [f"int({extent} * {scale})" for extent, scale in zip(extents, full.scales, strict=True)]
    return [_size(full, scaled, at, extent) for at, extent in enumerate(extents)]


def _size(full: Interpolation, scaled: Interpolation, axis: int, extent: str) -> str:
    """Size that the caller gave: a number, or a multiple of the input's."""
    (of, to), (small_of, small_to) = (
        (item.input_size[axis], item.output_size[axis]) for item in (full, scaled)
    )
    if to == small_to:
        return str(to)
    if not to % of and to // of * small_of == small_to:
        return f"{extent} * {to // of}"
    raise Declined("the size of the interpolation depends on the problem's size")


def _values(call: OperatorCall, full: Interpolation, upper: str) -> dict[str, object]:
    rank = len(full.input_size)
    extents = _EXTENTS[-rank:]
    scales = [f", {scale}" for scale in full.scales] if full.scales else [""] * rank
    tail = call.tail or OperatorTail(extras=(), lines=(), value="acc")
    extras = [extra.name for extra in tail.extras]
    tensors = ["mX", "mY", *(f"m_{extra}" for extra in extras)]
    return {
        **signature(call.name, tensors, ["steps"]),
        "upper": upper,
        "align": full.align_corners,
        "rank": rank,
        "what": "height and width" if rank == _BILINEAR else "size",
        "extents": ", ".join(extents),
        "outputs": ", ".join(f"O{extent}" for extent in extents),
        "sizes": output_sizes(call),
        "steps": [
            f"{call.name}_step({extent}, O{extent}{scale})"
            for extent, scale in zip(extents, scales, strict=True)
        ],
        "at": ", ".join(("plane", *_AXES[-rank:])),
        "lead": len(call.shape) - rank,
        "extras": extras,
        "tail_lines": tail.lines,
        "value": tail.value,
        "extra_arguments": "".join(f", m_{extra}" for extra in extras),
        "extra_params": "".join(f", m_{extra}: cute.Tensor" for extra in extras),
        "x": call.operands[0].name,
        "names": [call.operands[0].name, *extras],
    }


def _taps(name: str, full: Interpolation) -> dict[str, object]:
    """Values of the template for any number of dimensions, and of elements along each."""
    rank = len(full.input_size)
    outer = _AXES[-rank:-1] if rank > 1 else ()
    between = [_BETWEEN[at] for at in outer]
    taps = 4 if full.cubic else 2
    return {
        "cubic": full.cubic,
        "element_params": ", ".join(["mX: cute.Tensor", "plane", *between, "x", "step: cutlass.Constexpr"]),
        "element_arguments": ", ".join(["mX", "plane", *between, "x", f"steps[{rank - 1}]"]),
        "element": joined(_element(outer, taps)),
        "decode_row": joined(_decoded(name, outer)),
    }


def _element(outer: tuple[str, ...], taps: int) -> list[str]:
    """Statements that add the taps of one output to ``acc``, each row of them first by itself."""
    lines, indent = [], ""
    for at in outer:
        lines.append(f"{indent}for k_{at} in cutlass.range_constexpr({taps}):")
        indent += "    "
    total = "line" if outer else "acc"
    lines += [f"{indent}line = cutlass.Float32(0.0)"] if outer else []
    place = ", ".join(f"{_BETWEEN[at]}[0][k_{at}]" for at in outer)
    lines += [
        f"{indent}for k_x in cutlass.range_constexpr({taps}):",
        f"{indent}    value = mX[plane, {place}{', ' if place else ''}columns[0][k_x]]",
        f"{indent}    {total} += value.to(cutlass.Float32) * columns[1][k_x]",
    ]
    weights = " * ".join(f"{_BETWEEN[at]}[1][k_{at}]" for at in outer)
    return [*lines, f"{indent}acc += line * {weights}"] if outer else lines


def _decoded(name: str, outer: tuple[str, ...]) -> list[str]:
    """Statements that find the row ``left`` of the output, and what it lies between."""
    lines = [
        f"{at}, left = (left % mY.shape[{dim}]).to(cutlass.Int32), left // mY.shape[{dim}]"
        for dim, at in reversed(list(enumerate(outer, start=1)))
    ]
    lines.append("plane = left")
    lines += [
        f"{_BETWEEN[at]} = {name}_taps({at}, steps[{dim - 1}], mX.shape[{dim}])"
        for dim, at in enumerate(outer, start=1)
    ]
    return lines
