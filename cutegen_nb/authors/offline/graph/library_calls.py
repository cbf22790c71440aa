"""Calls of PyTorch that a problem's library policy allows, as expressions of ``forward``."""

from __future__ import annotations

from cutegen_nb.authors.offline.graph.ir import Name, Shape, Values
from cutegen_nb.core.errors import Declined

LIBRARY_CALLS = frozenset({"addmm", "addmv", "baddbmm", "bmm", "convolution", "dot", "mm", "mv"})
"""ATen operations by short name that are functions of ``torch`` with the same operands."""


def host_expression(values: Values, name: str, caller: str) -> str:
    """Return an input, a parameter or a view of one as an expression of ``forward``.

    Raises Declined where a kernel makes the value: the author lets PyTorch work before its kernels only.
    """
    buffer = values.buffers.get(name)
    if buffer is not None:
        return name if buffer.made else buffer.text
    op = values.ops[name]
    source = op.args[0] if op.args else None
    if isinstance(source, Name) and op.op == "permute":
        return f"{host_expression(values, source.name, caller)}.permute({', '.join(map(str, op.dims))})"
    if isinstance(source, Name) and op.op == "view":
        return f"{host_expression(values, source.name, caller)}.reshape({_extents(op.shape, caller)})"
    raise Declined(f"the offline author leaves {caller} to PyTorch only where no kernel comes before it")


def _extents(shape: Shape, caller: str) -> str:
    """Extents of a view: numbers, and -1 for the one that depends on the problem's size."""
    sizes = [extent.full if extent.full == extent.scaled else -1 for extent in shape]
    if sizes.count(-1) > 1:
        raise Declined(f"{caller} takes a view whose extents depend on the problem's size")
    return ", ".join(map(str, sizes))
