"""Memory of tensors that lie in a larger one: slices that are read, and the parts of a concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from cutegen_nb.authors.offline.graph.ir import Extent, GraphProgram, Name, Op, elements


@dataclass(frozen=True, slots=True, kw_only=True)
class Pitch:
    """Gaps in the memory of a tensor, which one loop must not run across."""

    breaks: frozenset[int]
    """Dimensions that do not follow densely on the one before: a step of the dimension before is no multiple
    of all their elements. 0 and the number of dimensions stand for no gap."""
    whole: Extent
    """Number of elements of the tensor that it lies in."""


def pitches(program: GraphProgram, views: Sequence[Op], dense: AbstractSet[str]) -> dict[str, Pitch]:
    """Gaps of the parts of concatenations, and of those of the host's views that need not be `dense`."""
    joined = [op for op in program.ops.values() if op.op == "cat"]
    found = {part: _part_pitch(op) for op in joined for part in op.operands}
    dense = dense | {name for view in views for name in view.operands}
    for view in views:
        pitch = _view_pitch(program, view) if view.name not in dense else None
        if pitch is not None:
            found[view.name] = pitch
    return found


def _part_pitch(whole: Op) -> Pitch:
    """Gaps of each operand of a concatenation, in the tensor of all of them."""
    return Pitch(breaks=frozenset(whole.dims), whole=elements(whole.shape))


def _view_pitch(program: GraphProgram, view: Op) -> Pitch | None:
    """Gaps of a slice of a dense tensor; None for other views, which the host copies."""
    source, dim = view.args[0], view.args[1] if len(view.args) > 1 else None
    if not isinstance(source, Name) or not isinstance(dim, int):
        return None
    kind = view.op.removeprefix("host_view:")
    if kind not in {"slice", "narrow", "select"}:
        return None
    # With a step, the elements of the dimension itself do not follow densely on one another either.
    apart = {dim, dim + 1} if kind == "slice" and view.args[4] != 1 else {dim}
    return Pitch(breaks=frozenset(apart), whole=elements(program.shape(source.name)))
