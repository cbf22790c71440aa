"""Writer of selections: the strategies that fit, and the text of a kernel from its template."""

from __future__ import annotations

from fractions import Fraction

from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.selection.matching import Selection, selections_in
from cutegen_nb.authors.offline.operators.selection.strategies import (
    BLOCK,
    BLOCK_STRATEGY,
    WARP,
    WARP_STRATEGY,
)
from cutegen_nb.authors.offline.templates import render, signature
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy

_FLOATS = ("float32", "float16", "bfloat16")
_MOST_SELECTED = 128
"""Elements up to which a round for each is reasonable; a sort has fewer steps for more."""
_PER_THREAD = 16
"""Elements of a row that a thread keeps in registers."""
_LONGEST_ROW = 1024 * _PER_THREAD
"""Elements that the registers of the largest CTA keep."""


class SelectionWriter:
    """Writer of ``topk`` along the last dimension."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the selections of a graph, in order."""
        return selections_in(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies: a warp for a short row, else a CTA. Raises Declined."""
        selection = _attributes(call.attributes)
        reason = _obstacle(selection, call.operands[0].dtype)
        if reason:
            raise Declined(f"the offline author writes torch.topk {reason}")
        _count(call)
        return (WARP_STRATEGY if selection.length <= 32 * _PER_THREAD else BLOCK_STRATEGY,)

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        if call.tail is not None:
            raise Declined("the offline author fuses nothing into torch.topk")
        shared = bool({WARP, BLOCK} & set(applied))
        source = render(f"selection/{'shared' if shared else 'thread'}", **_values(call, shared=shared))
        return OperatorText(source=source, constants={}, imports=("import math",) if shared else ())


def _attributes(given: object) -> Selection:
    assert isinstance(given, Selection)
    return given


def _obstacle(selection: Selection, dtype: str) -> str:
    """Limit of the kernels that a selection exceeds; empty for none."""
    if not selection.last:
        return f"along the last dimension only, not along dimension {selection.dim}"
    if dtype not in _FLOATS:
        return f"of {', '.join(_FLOATS)} only, not of {dtype}"
    if selection.length > _LONGEST_ROW:
        return f"of rows of at most {_LONGEST_ROW:,} elements, not of {selection.length:,}"
    if selection.count > _MOST_SELECTED:
        return f"of at most {_MOST_SELECTED} elements a row, not of {selection.count:,}"
    return ""


def _count(call: OperatorCall) -> str:
    """Expression for the number of elements selected: a constant, or a share of a row. Raises Declined."""
    full, scaled = _attributes(call.attributes), _attributes(call.scaled_attributes)
    if full.count == scaled.count:
        return str(full.count)
    share = Fraction(full.count, full.length)
    if share != Fraction(scaled.count, scaled.length):
        raise Declined(
            f"the offline author cannot compute the {full.count} elements of torch.topk from the row's length"
        )
    return f"{share.numerator} * {{x}}.shape[-1] // {share.denominator}".format(x=call.operands[0].name)


def _values(call: OperatorCall, *, shared: bool) -> dict[str, object]:
    selection = _attributes(call.attributes)
    # Tensor of the kernel, its name in the host's function and its dtype.
    results = [("mV", "out", "")] if selection.values else []
    results += [("mI", "place", ", dtype=torch.int64")] if selection.places else []
    numbers = ["threads", "block"] if shared else []
    what = "elements" if selection.values else "positions of the elements"
    behind = ", and their positions" if len(results) > 1 else ""
    return {
        **signature(call.name, ["mX", *(tensor for tensor, _, _ in results)], numbers),
        "shared": shared,
        "NAME": call.name.upper(),
        "x": call.operands[0].name,
        "count": _count(call),
        "largest": selection.largest,
        "values": selection.values,
        "places": selection.places,
        "first": results[0][0],
        "made": [(name, dtype) for _, name, dtype in results],
        "per_thread": _PER_THREAD,
        "summary": f"The {what} that are {'largest' if selection.largest else 'smallest'} in each row, "
        f"best first{behind}.",
    }
