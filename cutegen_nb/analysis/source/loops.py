"""Facts on loops and launches that only a kernel's source tells, because a small size hides them.

A compiler drops a loop of one turn, and a simulated problem is scaled down. The text still says that a loop
is unrolled or walks the grid. Names are followed through plain assignments, not through calls.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

_RANGES = frozenset({"range", "range_constexpr", "range_dynamic"})
"""Names of the DSL's loops."""
_WAITS = frozenset({"cp_async_wait_group"})
"""Calls that wait until at most so many groups of asynchronous copies are under way."""
_LOADS = frozenset({"autovec_copy", "copy", "basic_copy", "load", "basic_copy_if"})
"""Calls that move data from memory."""
_UNROLLED = 2
"""Turns from which an unrolled loop counts as several loads in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopFacts:
    """Facts on the loops of a source."""

    grid_stride: bool = False
    """True if a loop starts at the CTA's index and its end does not depend on that index, or a kernel asks
    for the size of its grid."""
    unrolled_loads: int = 1
    """Largest number of turns unrolled together of a loop that loads; 1 without any."""
    groups_in_flight: int = 0
    """Largest number of groups of asynchronous copies that a wait leaves under way."""


def loop_facts(source: str) -> LoopFacts | None:
    """Return the facts of a source's loops; None if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    constants = _constants(tree)
    facts = [_of_kernel(node, constants) for node in ast.walk(tree) if _is_kernel(node)]
    return LoopFacts(
        grid_stride=any(item.grid_stride for item in facts),
        unrolled_loads=max((item.unrolled_loads for item in facts), default=1),
        groups_in_flight=max((item.groups_in_flight for item in facts), default=0),
    )


def _is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        _last(item.func if isinstance(item, ast.Call) else item) == "kernel" for item in node.decorator_list
    )


def _of_kernel(kernel: ast.AST, constants: dict[str, int]) -> LoopFacts:
    ours = _depend_on_cta(kernel)
    loops = [node for node in ast.walk(kernel) if isinstance(node, ast.For) and _is_range(node.iter)]
    waits = [
        _value(call.args[0] if call.args else None, constants)
        for call in ast.walk(kernel)
        if isinstance(call, ast.Call) and _last(call.func) in _WAITS
    ]
    return LoopFacts(
        grid_stride=any(_last(node) == "grid_dim" for node in ast.walk(kernel))
        or any(_walks_grid(loop, ours) for loop in loops),
        unrolled_loads=max((_turns(loop, constants) for loop in loops if _loads(loop)), default=1),
        groups_in_flight=max((turns for turns in waits if turns), default=0),
    )


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) in _RANGES


def _walks_grid(loop: ast.For, ours: set[str]) -> bool:
    """Return whether a loop starts at the CTA's place and ends where the work ends, not where a tile does."""
    assert isinstance(loop.iter, ast.Call)
    if len(loop.iter.args) != 3:  # noqa: PLR2004 - start, end and step
        return False
    start, end, _ = loop.iter.args
    return bool(_names(start) & ours) and not _names(end) & ours


def _turns(loop: ast.For, constants: dict[str, int]) -> int:
    """Turns that the compiler places side by side: all of a constant loop, or the factor of ``unroll``."""
    call = loop.iter
    assert isinstance(call, ast.Call)
    factor = next((word.value for word in call.keywords if word.arg == "unroll"), None)
    if factor is not None:
        return _value(factor, constants) or 1
    if _last(call.func) == "range_constexpr" and len(call.args) == 1:
        # A loop whose length is no constant of the module is unrolled all the same, by an unknown number.
        return _value(call.args[0], constants) or _UNROLLED
    return 1


def _loads(loop: ast.For) -> bool:
    """Return whether a loop's own body moves data with an index that changes from turn to turn."""
    changing = _closure(loop, _names(loop.target))
    return any(
        (isinstance(node, ast.Call) and _last(node.func) in _LOADS and _names(node) & changing)
        or (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and _tensor(node.value)
            and _names(node.slice) & changing
        )
        for node in ast.walk(loop)
    )


def _tensor(node: ast.expr) -> bool:
    """Return whether a name is a tensor in global memory by CuTe's convention: ``mX``, ``gA``."""
    return isinstance(node, ast.Name) and len(node.id) > 1 and node.id[0] in "mg" and node.id[1].isupper()


def _depend_on_cta(kernel: ast.AST) -> set[str]:
    """Names in a kernel that are computed from the index of the CTA."""
    first = {
        name
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign) and any(_last(part) == "block_idx" for part in ast.walk(node.value))
        for target in node.targets
        for name in _names(target)
    }
    return _closure(kernel, first - {"_"})


def _closure(tree: ast.AST, names: set[str]) -> set[str]:
    """Add the names that are assigned from `names`, directly or through each other."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    known, size = set(names), -1
    while len(known) > size:
        size = len(known)
        for node in assigned:
            if _names(node.value) & known:
                known |= {name for target in node.targets for name in _stored(target)}
    return known


def _stored(target: ast.expr) -> set[str]:
    """Names that an assignment binds; an element of a tensor binds none."""
    return {
        node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _names(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def _constants(tree: ast.Module) -> dict[str, int]:
    """Whole numbers that the module assigns to names."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and type(node.value.value) is int
    }


def _value(node: ast.expr | None, constants: dict[str, int]) -> int | None:
    """Value of a number, a constant of the module, or a sum, difference or product of these; else None."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, constants), _value(node.right, constants)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        return left * right if isinstance(node.op, ast.Mult) else None
    return None


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
