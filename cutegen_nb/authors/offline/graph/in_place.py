"""Views that calls take as they lie in memory: permuted, or slices of a larger tensor."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.authors.offline.graph.ir import Extent, GraphProgram, Name, Op, Shape, elements

_MOVES = frozenset({"view", "permute", "host_view:slice", "host_view:narrow", "host_view:select"})
"""Operations whose result is their operand's memory with other strides."""


def taken_in_place(program: GraphProgram) -> frozenset[str]:
    """Names of the views whose every use ends in a function that takes any strides.

    A view in another shape is among them if it only splits dimensions, or if its operand is dense.
    """
    users: dict[str, list[Op]] = {}
    for op in program.ops.values():
        for name in op.operands:
            users.setdefault(name, []).append(op)
    found: set[str] = set()
    for op in reversed(program.ops.values()):
        if op.op not in _MOVES or op.name in program.outputs or not isinstance(op.args[0], Name):
            continue
        using = users.get(op.name, [])
        if using and all(_keeps_strides(program, user, found) for user in using):
            found.add(op.name)
    return frozenset(found)


def _keeps_strides(program: GraphProgram, user: Op, found: set[str]) -> bool:
    """Return whether an operation takes its operand as it lies in memory; `found` are views of that kind."""
    if user.call is not None:
        return user.call.in_place
    if user.op != "view":
        return user.name in found
    return user.name in found and _splits(program.shape(user.operands[0]), user.shape)


def _splits(shape: Shape, parts: Shape) -> bool:
    """Return whether `parts` has one or several dimensions in the place of each of `shape`, and ones."""
    left = [extent for extent in parts if not extent.is_one]
    for extent in shape:
        if extent.is_one:
            continue
        run: Sequence[Extent] = ()
        while left and elements(run) != extent:
            run = (*run, left.pop(0))
        if elements(run) != extent:
            return False
    return not left
