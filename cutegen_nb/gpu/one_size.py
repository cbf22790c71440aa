"""Was a candidate written for the problem's own size, and judged at a smaller one?

The simulator runs a smaller problem.  A kernel that takes its extents from numbers in its source instead of
its inputs fails there though it is right at its own size: that has to be said beside the verdict.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.core.problem import Rewrite

_SMALLEST = 65
"""Smaller numbers are tiles and vectors."""


def written_for_one_size(source: str, rewrites: Sequence[Rewrite]) -> Finding | None:
    """A flag where `source` names an extent that was made smaller; None where it names none."""
    scaled = {item.full: item.scaled for item in rewrites if item.full >= _SMALLEST}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    named = next((node for node in ast.walk(tree) if _value(node) in scaled), None)
    if named is None:
        return None
    value = _value(named)
    message = (
        f"The problem was judged at a smaller size here, its {value} as {scaled[value]}, and the file names "
        f"{value}: if the kernel takes an extent from that number, it fails here whether or not it is right "
        "at its own size. Read extents from the inputs, or judge it on a GPU, at the full size."
    )
    line = getattr(named, "lineno", 0)
    return Finding(kind="names-the-full-size", message=message, severity=Severity.FLAG, line=line)


def _value(node: ast.AST) -> int:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0
