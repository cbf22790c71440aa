"""Writer of scans: the strategies that fit, and the text of a kernel from its template."""

from __future__ import annotations

import math
from collections.abc import Callable

from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.scans.matching import ScanAttributes, scans_of
from cutegen_nb.authors.offline.operators.scans.strategies import (
    BLOCK,
    BLOCK_STRATEGY,
    COLUMNS,
    COLUMNS_STRATEGY,
    PREFETCH,
    PREFETCH_STRATEGY,
    SPLIT,
    SPLIT_STRATEGY,
    WARP,
    WARP_STRATEGY,
)
from cutegen_nb.authors.offline.templates import joined, render
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy

_FEW_ROWS = 264
"""Rows below which several CTAs share one: two CTAs for each multiprocessor of an H100."""
_LONG_ROW = 16384
"""Elements from which on a row has work for several CTAs."""


class ScanWriter:
    """Writer of cumulative sums, products, extremes and logarithms of sums of exponentials."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the scans of a graph, in order."""
        return scans_of(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies: other ones along contiguous rows than along strided columns."""
        attributes = _attributes(call)
        if not _is_contiguous(call, attributes):
            return (COLUMNS_STRATEGY,)
        rows, length = elements(call.shape[: attributes.dim]).full, call.shape[attributes.dim].full
        few = rows < _FEW_ROWS and length >= _LONG_ROW
        steps = (WARP_STRATEGY, BLOCK_STRATEGY, PREFETCH_STRATEGY)
        return (*steps, SPLIT_STRATEGY) if few else steps

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel of the furthest strategy in `applied`."""
        source = render(f"scans/{_template(applied)}", **_values(call, applied))
        return OperatorText(source=source, constants={}, imports=("import math",))


def _attributes(call: OperatorCall) -> ScanAttributes:
    assert isinstance(call.attributes, ScanAttributes)
    return call.attributes


def _is_contiguous(call: OperatorCall, attributes: ScanAttributes) -> bool:
    """Return whether the scanned elements are neighbours in memory."""
    return elements(call.shape[attributes.dim + 1 :]).is_one


def _template(applied: tuple[str, ...]) -> str:
    for names, template in (((BLOCK, PREFETCH, SPLIT), "rows"), ((WARP,), "warp"), ((COLUMNS,), "columns")):
        if set(names) & set(applied):
            return template
    return "thread"


def _values(call: OperatorCall, applied: tuple[str, ...]) -> dict[str, object]:
    attributes, tail = _attributes(call), call.tail
    extras = [extra.name for extra in tail.extras] if tail else []
    read = ["mX", "mMask"] if attributes.masked else ["mX"]
    names = [item.name for item in call.operands] + extras

    def parameters(items: list[str], kind: str) -> str:
        return ", ".join(f"{item}: {kind}" for item in items)

    def finished(acc: str, at: str) -> str:
        if tail is not None:
            acc = f"{call.name}_finished({', '.join([acc, at, *extras])})"
        elif not acc.isidentifier():
            acc = f"({acc})"
        return f"{acc}.to(mY.element_type)"

    return {
        "name": call.name, "NAME": call.name.upper(), "tail": tail, "extras": extras, "dim": attributes.dim,
        "params": parameters([*read, "mY", *extras], "cute.Tensor"),
        "arguments": ", ".join([*read, "mY", *extras]),
        "params_in": parameters(read, "cute.Tensor"), "arguments_in": ", ".join(read),
        "torch_params": parameters(names, "torch.Tensor"),
        "launched": ", ".join([f"{call.operands[0].name}.view(lines)",
                               *(f"{item.name}.view(torch.uint8).view(lines)" for item in call.operands[1:]),
                               "out.view(lines)", *extras]),
        "tail_params": "".join(f", {extra}: cute.Tensor" for extra in extras),
        "identity": _number(attributes.identity), "kind": attributes.kind,
        "combine": _combining(call.name, attributes),
        "reverse": attributes.reverse,
        "exclusive": attributes.exclusive, "masked": attributes.masked,
        "prefetch": PREFETCH in applied, "split": SPLIT in applied,
        "finished": finished, "summary": _summary(call), "views": _views(call), "x": call.operands[0].name,
    }  # fmt: skip


def _number(value: float) -> str:
    return f'float("{value}")' if math.isinf(value) else str(value)


def _combining(name: str, attributes: ScanAttributes) -> Callable[[str, str], str]:
    """Expression of two values as one, from their expressions."""
    sign = {"sum": "+", "product": "*"}.get(attributes.kind)
    if sign:
        return lambda a, b: f"{a} {sign} {b}"
    extremum = {"maximum": "fmax", "minimum": "fmin"}.get(attributes.kind)
    if extremum:
        # NaN if one of them is, as in PyTorch.
        return lambda a, b: f"cute.arch.{extremum}({a}, {b}, nan=True)"
    return lambda a, b: f"{name}_both({a}, {b})"


def _summary(call: OperatorCall) -> str:
    attributes = _attributes(call)
    words = [f"Cumulative {attributes.kind} along dimension {attributes.dim}"]
    words += ["from the end"] if attributes.reverse else []
    words += ["without the element itself"] if attributes.exclusive else []
    words += ["of the elements times their mask"] if attributes.masked else []
    return f"{', '.join(words)}."


def _views(call: OperatorCall) -> str:
    """Statements that allocate the output and find its lines."""
    dim, x = _attributes(call).dim, call.operands[0].name
    lines = f"lines = math.prod({x}.shape[:{dim}]), {x}.shape[{dim}], math.prod({x}.shape[{dim + 1}:])"
    return joined([
        f"    out = torch.empty({x}.shape, dtype=torch.{call.dtype}, device={x}.device)",
        f"    {lines}  # before, along and after the scan",
    ])  # fmt: skip
