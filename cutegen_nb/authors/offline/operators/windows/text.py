"""Text of a window's kernel: values of the templates."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorTail, OperatorText
from cutegen_nb.authors.offline.operators.windows.attributes import Window
from cutegen_nb.authors.offline.operators.windows.march import MarchPlan
from cutegen_nb.authors.offline.templates import render, wrapped

_NEUTRAL = {"max": 'float("-inf")', "avg": "0.0", "conv": "0.0"}
"""Value of a tap in the padding, by kind."""
_WHAT = {"max": "the greatest element of each window", "avg": "the mean of each window"}
_EXTENTS = {
    1: "(1, 1, mX.shape[3])",
    2: "(1, mX.shape[1], mX.shape[3])",
    3: "(mX.shape[1], mX.shape[2], mX.shape[3])",
}
"""Depth, height and width of the input as the march sees it, by the number of its spatial dimensions."""
_AXES = ("DEPTH", "HEIGHT", "WIDTH")


@dataclass(frozen=True, slots=True)
class CountedAxis:
    """Axis along which the divisor of a mean differs from window to window."""

    at: str
    """Coordinate of the output."""
    extent: str
    """Extent of the input."""
    constant: str
    """Constant of the axis."""


def window_text(call: OperatorCall, window: Window, plan: MarchPlan | None) -> OperatorText:
    """Write the simplest kernel, or the march that `plan` describes."""
    upper = call.name.upper()
    values = {**_common(call, window, upper), **_host(call, window, upper)}
    constants = {} if window.adaptive else _axis_constants(window, upper)
    if plan is None:
        constants[f"{upper}_THREADS"] = "256"
        return OperatorText(source=render("windows/simple", planned=False, **values), constants=constants)
    constants |= plan.constants(upper)
    source = render("windows/march", planned=True, **plan.values(window), **values)
    return OperatorText(source=source, constants=constants, imports=("import math",))


def _axis_constants(window: Window, upper: str) -> dict[str, str]:
    lines = {f"{upper}_{axis}": value.text for axis, value in zip(_AXES, window.axes, strict=True)}
    first = f"{upper}_{_AXES[0]}"
    lines[first] += "  # window, stride, padding and dilation of each axis"
    return lines


def _common(call: OperatorCall, window: Window, upper: str) -> dict[str, object]:
    tail = call.tail or OperatorTail(extras=(), lines=(), value="acc")
    extras = [{"name": extra.name, "at": _place(window, len(call.shape))} for extra in tail.extras]
    inputs = ["mX", *(["mW"] if window.kind == "conv" else []), *(["mB"] if window.bias else [])]
    beside = [f"m_{extra.name}" for extra in tail.extras]
    finishing = [*(["mB"] if window.bias else []), *beside]
    tensors = [*inputs, "mY", *beside]
    typed = [f"{tensor}: cute.Tensor" for tensor in tensors]
    return {
        "name": call.name,
        "upper": upper,
        "kind": window.kind,
        "bias": window.bias,
        "adaptive": bool(window.adaptive),
        "neutral": _NEUTRAL[window.kind],
        "combine": _combined if window.kind == "max" else _added,
        "counting": _counting(window),
        "include_pad": window.include_pad,
        "divisor": window.divisor or window.taps,
        "counted": _counted(window, upper),
        "extras": [
            {**extra, "at": str(extra["at"]).replace("EXTRA", f"m_{extra['name']}")} for extra in extras
        ],
        "tail_lines": tail.lines,
        "value": tail.value,
        "finish_params": "".join(f", {item}: cute.Tensor" for item in finishing),
        "finish_arguments": "".join(f", {item}" for item in finishing),
        "typed": typed,
        "arguments": ", ".join(tensors),
        "params": wrapped(typed, len(f"def {call.name}_kernel():")),
        "host_params": wrapped([*typed, "stream: cuda.CUstream"], len(f"def {call.name}_host():")),
    }


def _host(call: OperatorCall, window: Window, upper: str) -> dict[str, object]:
    """Values of the function that allocates the output and launches."""
    names = [operand.name for operand in call.operands]
    extras = [extra.name for extra in call.tail.extras] if call.tail else []
    given = ["mX", *(["mW"] if window.kind == "conv" else []), *(names[2:] if window.bias else [])]
    return {
        "x": names[0],
        "weight": names[1] if window.kind == "conv" else "",
        "names": [*names, *extras],
        "tensors": [*given, "mY", *extras],
        "what": _WHAT.get(window.kind, "each channel convolved with its own weights"),
        "spatial": window.spatial,
        "extents": _EXTENTS[window.rank],
        "rank": window.rank,
        "outputs": window.adaptive,
        "axes": [f"{upper}_{axis}" for axis in _AXES[-window.spatial :]],
        "ceil": window.ceil,
    }


def _combined(value: str, other: str) -> str:
    """Expression of the greater of two values; NaN if one of them is, as in PyTorch."""
    return f"cute.arch.fmax({value}, {other}, nan=True)"


def _added(value: str, other: str) -> str:
    return f"{value} + {other}"


def _counting(window: Window) -> str:
    if window.kind != "avg" or window.adaptive:
        return ""
    return "window" if window.counts_rim else "constant"


def _counted(window: Window, upper: str) -> list[CountedAxis]:
    names = zip("zyx", "DHW", _AXES, window.axes, strict=True)
    return [
        CountedAxis(at, extent, f"{upper}_{constant}")
        for at, extent, constant, axis in names
        if axis.window > 1 or axis.padding or at == "x"
    ]


def _place(window: Window, rank: int) -> str:
    """Coordinate of an output in a tensor of the output's own rank."""
    lead = rank - window.spatial
    planes = ["plane"] if lead == 1 else ["plane // EXTRA.shape[1]", "plane % EXTRA.shape[1]"]
    return ", ".join([*(planes if lead else []), *("z", "y", "x")[-window.spatial :]])
