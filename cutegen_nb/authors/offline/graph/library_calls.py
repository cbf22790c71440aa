"""Calls of PyTorch that a problem's library policy allows, as calls of ``forward``."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.graph.ir import HostCall
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Argument, Node, Ref
from cutegen_nb.core.library import Library, family_of

LIBRARY_CALLS = frozenset({"addmm", "addmv", "baddbmm", "bmm", "convolution", "dot", "mm", "mv"})
"""ATen operations by short name that are functions of ``torch`` with the same operands."""
PLACES = frozenset({"dtype", "device", "layout", "memory_format", "pin_memory", "non_blocking"})
"""Keyword operands that say where and how a result is stored, not its value."""


def is_left(node: Node, library: Library) -> bool:
    """Return whether the policy leaves a node to PyTorch, and the author can call it there."""
    return short_name(node.op) in LIBRARY_CALLS and family_of(node.op) in library


def library_call(node: Node, small: Node) -> tuple[HostCall, tuple[Ref, ...]]:
    """Call of PyTorch for a node, and its tensor operands.

    Raises Declined where a number changes with the problem's size.
    """
    if (node.args, node.kwargs) != (small.args, small.kwargs):
        raise Declined(f"{node.op} takes a number that depends on the problem's size")
    values = [_text(value) for value in node.args]
    values += [f"{key}={_text(value)}" for key, value in node.kwargs if key not in PLACES]
    call = HostCall(text=f"torch.{short_name(node.op)}({', '.join(values)})")
    given = (*node.args, *(value for key, value in node.kwargs if key not in PLACES))
    return call, tuple(value for value in given if isinstance(value, Ref))


def _text(value: Argument) -> str:
    if isinstance(value, Ref):
        return "{}"
    return str(list(value)) if isinstance(value, tuple) else repr(value)
