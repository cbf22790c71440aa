"""Candidates that name the problem's full size in their source and were judged at a smaller size.

The simulator runs a smaller problem. A kernel that takes its extents from numbers in its source instead of
its inputs fails there, though it may be right at its own size: a flag beside the verdict says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.problem import Rewrite

_SMALLEST = 65
"""Smallest number that counts as an extent; smaller ones are mostly tiles and vectors."""
_LARGEST_CTA = 1024
"""Most threads of a CTA, up to which a number may be a choice of the kernel's author."""
_OWN_CHOICE = re.compile(r"THREAD|WARP|BLOCK|TILE|STAGE|VEC|UNROLL|DEPTH|CHUNK", re.IGNORECASE)
"""Names of constants that an author chooses, whatever the problem's size."""


def written_for_one_size(source: str, rewrites: Sequence[Rewrite]) -> Finding | None:
    """Return a flag if an integer literal of `source` is an extent that was made smaller; else None."""
    scaled = {item.full: item.scaled for item in rewrites if item.full >= _SMALLEST}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    chosen = _choices(tree)
    named = next((node for node in ast.walk(tree) if _value(node) in scaled and node not in chosen), None)
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


def _choices(tree: ast.Module) -> set[ast.AST]:
    """Return the literals that are threads of a CTA, a tile or the like: in ``block=``, or in such a name."""
    blocks = [
        word.value for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords
        if word.arg == "block"
    ]  # fmt: skip
    names = {item.id for block in blocks for item in ast.walk(block) if isinstance(item, ast.Name)}
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(_is_choice(target, names) for target in node.targets)
    ]
    literals = (item for value in (*blocks, *values) for item in ast.walk(value))
    return {item for item in literals if 0 < _value(item) <= _LARGEST_CTA}


def _is_choice(target: ast.expr, names: set[str]) -> bool:
    """Return whether an assigned name is used in ``block=`` or says that its value is a choice."""
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    return any(
        isinstance(item, ast.Name) and (item.id in names or _OWN_CHOICE.search(item.id)) for item in targets
    )


def _value(node: ast.AST) -> int:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0
