"""Fusion of the element-wise work behind an operator into its kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cutegen_nb.authors.offline.expressions.expressions import Apply, Expr, Leaf, ValueType, body, kind_of
from cutegen_nb.authors.offline.expressions.pointwise import is_pointwise
from cutegen_nb.authors.offline.fused.lowering import (
    Axis,
    ExpressionLowering,
    Index,
    NotIndexableError,
    OperandAccess,
    SplitNeededError,
)
from cutegen_nb.authors.offline.fused.plan import PlannedKernel, plan
from cutegen_nb.authors.offline.graph.ir import ONE, GraphProgram, Name, Op
from cutegen_nb.authors.offline.graph.reading import function_call, reachable
from cutegen_nb.authors.offline.operators.cut import CutProblem, parameter_names
from cutegen_nb.authors.offline.operators.operator import OperandTensor, OperatorTail
from cutegen_nb.authors.offline.templates import wrapped
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Strategy

FUSE_TAIL = "fuse-tail"
"""Name of the strategy."""
FUSE_TAIL_STRATEGY = Strategy(
    name=FUSE_TAIL,
    statement="Move the element-wise work behind a product or another operator (bias, activation, scaling, a "
    "residual) into its kernel: each output is finished in a register, so that the value between the two is "
    "neither written to global memory nor read again, and a launch is saved.",
    bounds=(Bound.MEMORY, Bound.LATENCY),
    effects=tuple(
        ExpectedEffect(counter=counter, direction=Direction.DOWN)
        for counter in ("gmem_load_sectors", "gmem_store_sectors", "latency_ms")
    ),
    source="library",
)
"""Strategy of a program in which an operator has such work behind it."""


def with_tails(whole: CutProblem) -> CutProblem:
    """Fuse what can be fused into each operator; the same problem where that is nothing. Raises Declined."""
    for function in whole.parts:
        call = next(
            (op for op in whole.program.ops.values() if op.call and op.call.function == function), None
        )
        for end in _ends(whole.program, call) if call else ():
            fused = _fused(whole, call, end) if call else None
            if fused is not None:
                whole = fused
                break
    return whole


def _ends(program: GraphProgram, call: Op) -> Iterator[Op]:
    """Operations up to which all work on a call's result is element-wise and used nowhere else, last first."""
    users: dict[str, set[str]] = {name: {"returned"} for name in program.outputs}
    for op in program.ops.values():
        for name in op.operands:
            users.setdefault(name, set()).add(op.name)
    before = {call.name: frozenset({call.name})}
    found: list[Op] = []
    for op in program.ops.values():
        joined = [before[name] for name in op.operands if name in before]
        if not joined or not is_pointwise(op.op) or op.shape != call.shape:
            continue
        before[op.name] = frozenset({op.name}).union(*joined)
        inside = before[op.name] - {op.name}
        if op.dtype == call.dtype and all(users[name] <= before[op.name] for name in inside):
            found.append(op)
    return reversed(found)


def _fused(whole: CutProblem, call: Op, end: Op) -> CutProblem | None:
    """Fuse the work up to `end` into a call; None where its kernel cannot take it."""
    found = _tail(whole, call, end)
    if found is None:
        return None
    tail, taken, spreads = found
    assert call.call is not None
    function = call.call.function
    names = (*call.operands, *taken)
    made = replace(end, op="call", args=tuple(map(Name, names)), kwargs=(), dims=(),
                   call=function_call(function, len(names)))  # fmt: skip
    ops: dict[str, Op] = {}
    for op in whole.program.ops.values():
        ops.update({spread.name: spread for spread in spreads} if op is end else {})
        ops[op.name] = made if op is end else op
    program = replace(whole.program, ops=reachable(ops, whole.program.outputs))
    fused = replace(whole, program=program, tails={**whole.tails, function: tail})
    try:
        whole.parts[function].writer.write(fused.call(made), ())
    except Declined:
        return None
    return fused


def _tail(whole: CutProblem, call: Op, end: Op) -> tuple[OperatorTail, list[str], list[Op]] | None:
    """Tail, the values that it takes besides the call's own, and the views of those that it makes.

    None where a value is not a float tensor in memory before the call, broadcast to its result.
    """
    program = whole.program
    later = _depending(program, call)
    stored = {store.access.value for step in plan(program).steps if isinstance(step, PlannedKernel)
              for store in (*step.element_stores, *step.row_stores)}  # fmt: skip
    stored |= {op.name for op in program.ops.values() if op.call}
    index = tuple(() if extent.is_one else (Axis(extent),) for extent in end.shape)
    lowering = ExpressionLowering(program, frozenset(stored - later | {call.name}))
    try:
        result = lowering.expr(end.name, index)
    except (SplitNeededError, NotIndexableError, Declined):
        return None
    if lowering.counts:
        return None
    parameters = parameter_names(call.operands, whole.part_of(call).name)
    leaves: dict[str, Leaf] = {}
    extras: list[OperandTensor] = []
    taken: list[str] = []
    spreads: list[Op] = []
    for access in lowering.accesses.values():
        if access.value == call.name and access.index == index:
            leaves[access.register] = Leaf("acc", ValueType.F32)
            continue
        if access.value in later or kind_of(program.dtype(access.value)) is not ValueType.F32:
            return None
        value = access.value
        if access.index != index:
            spread = _spread(whole, call, access, index)
            if spread is None:
                return None
            value = spread.name
            spreads.append(spread)
        name = parameter_names((*parameters, access.register), "")[-1]
        parameters.append(name)
        taken.append(value)
        leaves[access.register] = Leaf(f"{name}_value", ValueType.F32)
        shape = tuple(
            extent if axes in access.index else ONE for extent, axes in zip(end.shape, index, strict=True)
        )
        extras.append(OperandTensor(name=name, shape=shape, dtype=program.dtype(access.value)))
    lines, values = body({"result": _renamed(result, leaves)})
    tail = OperatorTail(extras=tuple(extras), lines=tuple(lines), value=values["result"])
    return tail, taken, spreads


def _depending(program: GraphProgram, call: Op) -> set[str]:
    """Names of the values that are computed from a call's result, and of the result."""
    found = {call.name}
    for op in program.ops.values():
        if found.intersection(op.operands):
            found.add(op.name)
    return found


def _spread(whole: CutProblem, call: Op, access: OperandAccess, index: Index) -> Op | None:
    """Host's view of a tensor in the shape of a call's result; None where the host cannot tell that shape."""
    extents = whole.part_of(call).extents
    places = [next((at for at, axes in enumerate(index) if axis in axes), -1) for axis in access.axes]
    if extents is None or places != sorted(places) or -1 in places:
        return None
    operands = tuple(f"{{{at + 1}}}" for at in range(len(call.operands)))
    whole_shape = [text.format(*operands) for text in extents]
    held = [whole_shape[at] if at in places else "1" for at in range(len(index))]
    if len(places) == 1:
        held = ["-1" if at in places else "1" for at in range(len(index))]
    name = whole.fresh(f"{access.value}_spread")
    text = f"{{0}}.view({', '.join(held)}).expand({wrapped(whole_shape, len(name) + 40)})"
    return Op(
        name=name, op="spread", args=(Name(access.value), *map(Name, call.operands)),
        kwargs=(("text", text),), shape=call.shape, dtype=whole.program.dtype(access.value),
    )  # fmt: skip


def _renamed(expr: Expr, leaves: Mapping[str, Leaf]) -> Expr:
    """Put other registers for those of an expression."""
    known: dict[int, Expr] = {}

    def renamed(one: Expr) -> Expr:
        done = known.get(id(one))
        if done is None:
            if isinstance(one, Apply):
                done = Apply(one.op, tuple(renamed(arg) for arg in one.args), one.kind)
            else:
                done = leaves[one.name] if isinstance(one, Leaf) else one
            known[id(one)] = done
        return done

    return renamed(expr)
