"""Windows that are the same at both sizes of a problem."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.operators.operator import OperatorCall
from cutegen_nb.authors.offline.operators.windows.attributes import Window, WindowAxis
from cutegen_nb.core.errors import Declined


def settled(call: OperatorCall) -> Window:
    """Windows of a call, at every size. Raises Declined where they are other ones at each."""
    window, scaled = call.attributes, call.scaled_attributes
    if not isinstance(window, Window) or not isinstance(scaled, Window):
        raise TypeError(f"{window!r} and {scaled!r} are not both the attributes of a window")
    if window == scaled:
        return window
    if replace(window, adaptive=()) != replace(scaled, adaptive=()):
        raise Declined("the windows depend on the problem's size")
    pairs = _pairs(call, window.spatial)
    taps = [_ratio(*pair) for pair in pairs]
    if all(taps):
        # As many outputs as a part of the input's extents are windows side by side.
        axes = [WindowAxis(one, one) for one in taps if one]
        depth, height, width = [WindowAxis()] * (len(window.axes) - len(axes)) + axes
        return replace(window, adaptive=(), axes=(depth, height, width))
    name = call.operands[0].name
    outputs = tuple(_outputs(*pair, f"{name}.shape[{at - len(pairs)}]") for at, pair in enumerate(pairs))
    return replace(window, adaptive=outputs)


def _pairs(call: OperatorCall, spatial: int) -> list[tuple[Extent, Extent]]:
    """Extents of the input and of the output along each spatial dimension."""
    return list(zip(call.operands[0].shape[-spatial:], call.shape[-spatial:], strict=True))


def _ratio(whole: Extent, part: Extent) -> int:
    """Whole number of times that one extent is the other at both sizes; 0 if it is none."""
    ratio = whole.full // part.full
    return ratio if (ratio * part.full, ratio * part.scaled) == (whole.full, whole.scaled) else 0


def _outputs(before: Extent, after: Extent, extent: str) -> int | str:
    """Outputs along a dimension: a number, or an expression of the input's extent. Raises Declined."""
    if after.full == after.scaled:
        return after.full
    for ratio, sign in ((_ratio(before, after), "//"), (_ratio(after, before), "*")):
        if ratio:
            return extent if ratio == 1 else f"{extent} {sign} {ratio}"
    raise Declined("the windows depend on the problem's size")
