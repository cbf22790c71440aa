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
from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.graph.ir import ONE, GraphProgram, Name, Op
from cutegen_nb.authors.offline.graph.reading import function_call, reachable
from cutegen_nb.authors.offline.operators.cut import CutProblem, parameter_names
from cutegen_nb.authors.offline.operators.operator import OperandTensor, OperatorTail
from cutegen_nb.authors.offline.templates import wrapped
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.strategy import Bound, Strategy, lowers

FUSE_TAIL = "fuse-tail"
"""Name of the strategy."""
FUSE_TAIL_STRATEGY = Strategy(
    name=FUSE_TAIL,
    statement="Move the element-wise work behind a product or another operator (bias, activation, scaling, a "
    "residual) into its kernel: each output is finished in a register, so that the value between the two is "
    "neither written to global memory nor read again, and a launch is saved.",
    bounds=(Bound.MEMORY, Bound.LATENCY),
    effects=lowers("gmem_load_sectors", "gmem_store_sectors", "latency_ms"),
    source="library",
)
"""Strategy of a program in which an operator has such work behind it."""


def with_tails(whole: CutProblem) -> CutProblem:
    """Fuse what can be fused into each operator; the same problem where that is nothing. Raises Declined."""
    # A value that a fused call takes is stored for it, so that all values stored without fusion may be read.
    stored = frozenset(_stored(whole.program))
    for function in whole.parts:
        call = next(
            (op for op in whole.program.ops.values() if op.call and op.call.function == function), None
        )
        for end in _ends(whole.program, call) if call else ():
            fused = _fused(whole, call, end, stored) if call else None
            if fused is not None:
                whole = replace(fused, program=_without_copies(fused.program))
                break
    return whole


def _without_copies(program: GraphProgram) -> GraphProgram:
    """Return views of a call's result as they are: a copy was needed while a loop finished the result."""
    made = {name: _call_behind(program, name) for name in program.outputs}
    ops = {
        op.name: replace(op, op="view", args=(Name(made[op.name]),))
        if op.op == "clone" and made.get(op.name) and list(made.values()).count(made[op.name]) == 1
        else op
        for op in program.ops.values()
    }
    return replace(program, ops=reachable(ops, program.outputs))


def _call_behind(program: GraphProgram, name: str) -> str:
    """Call whose result an output views or copies; empty for any other output."""
    op = program.ops[name]
    while op.op in ("view", "clone") and isinstance(op.args[0], Name) and op.args[0].name in program.ops:
        op = program.ops[op.args[0].name]
    return op.name if op.call else ""


def _ends(program: GraphProgram, call: Op) -> Iterator[Op]:
    """Operations up to which all work on a call's result is element-wise and used only there, last first."""
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


def _fused(whole: CutProblem, call: Op, end: Op, stored: frozenset[str]) -> CutProblem | None:
    """Fuse the work up to `end` into a call; None where its kernel cannot take it."""
    gathering = _Gathering(whole, call, end)
    tail = gathering.tail(stored)
    if tail is None:
        return None
    name = whole.part_of(call).name
    operands = (*call.operands, *gathering.taken)
    made = replace(
        end, op="call", args=tuple(map(Name, operands)), kwargs=(), call=function_call(name, len(operands))
    )
    ops: dict[str, Op] = {}
    for op in whole.program.ops.values():
        if op is end:
            ops.update({spread.name: spread for spread in gathering.spreads})
        ops[op.name] = made if op is end else op
    program = replace(whole.program, ops=reachable(ops, whole.program.outputs))
    fused = replace(whole, program=program, tails={**whole.tails, name: tail})
    try:
        whole.parts[name].writer.write(fused.call(made), ())
    except Declined:
        return None
    return fused


class _Gathering:
    """Expression of a tail, with the tensors that it takes besides the call's own."""

    def __init__(self, whole: CutProblem, call: Op, end: Op) -> None:
        self.whole, self.call, self.end = whole, call, end
        self.index: Index = tuple(() if extent.is_one else (Axis(extent),) for extent in end.shape)
        self.later = _depending(whole.program, call)
        self.taken: list[str] = []
        self.spreads: list[Op] = []
        self.extras: list[OperandTensor] = []

    def tail(self, stored: frozenset[str]) -> OperatorTail | None:
        """Tail; None where a value is no float tensor in memory before the call, broadcast to its result.

        `stored` are the values that are in memory without fusion.
        """
        readable = stored - self.later | {self.call.name}
        lowering = ExpressionLowering(self.whole.program, readable)
        try:
            result = lowering.expr(self.end.name, self.index)
        except (SplitNeededError, NotIndexableError, Declined):
            return None
        leaves = {access.register: self._leaf(access) for access in lowering.accesses.values()}
        registers = {register: leaf for register, leaf in leaves.items() if leaf is not None}
        if lowering.counts or len(registers) < len(leaves):
            return None
        lines, values = body({"result": _renamed(result, registers)})
        return OperatorTail(extras=tuple(self.extras), lines=tuple(lines), value=values["result"])

    def _leaf(self, access: OperandAccess) -> Leaf | None:
        """Register for a value that the tail reads; None for one that it cannot have."""
        program, value = self.whole.program, access.value
        if value == self.call.name and access.index == self.index:
            return Leaf("acc", ValueType.F32)
        if value in self.later or kind_of(program.dtype(value)) is not ValueType.F32:
            return None
        if access.index != self.index:
            spread = self._spread(access)
            if spread is None:
                return None
            self.spreads.append(spread)
            value = spread.name
        self.taken.append(value)
        others = (*self.call.operands, *(extra.name for extra in self.extras))
        name = parameter_names((*others, access.register), self.whole.part_of(self.call).name)[-1]
        shape = tuple(
            extent if not axes or axes[0] in access.axes else ONE
            for extent, axes in zip(self.end.shape, self.index, strict=True)
        )
        self.extras.append(OperandTensor(name=name, shape=shape, dtype=program.dtype(access.value)))
        return Leaf(f"{name}_value", ValueType.F32)

    def _spread(self, access: OperandAccess) -> Op | None:
        """Host's view of a tensor in the result's shape; None where the host cannot tell that shape."""
        extents = self.whole.part_of(self.call).extents
        dims = [at for axis in access.axes for at, axes in enumerate(self.index) if axis in axes]
        if extents is None or dims != sorted(dims):
            return None
        # The tensor itself is operand 0 of the view, the call's operands follow it.
        operands = [f"{{{at + 1}}}" for at in range(len(self.call.operands))]
        shape = [text.format(*operands) for text in extents]
        held = [("-1" if len(dims) == 1 else text) if at in dims else "1" for at, text in enumerate(shape)]
        name = self.whole.fresh(f"{access.register}_spread")
        text = f"{{0}}.view({', '.join(held)}).expand({wrapped(shape, len(name) + 40)})"
        return Op(
            name=name,
            op="spread",
            args=(Name(access.value), *map(Name, self.call.operands)),
            kwargs=(("text", text),),
            shape=self.call.shape,
            dtype=self.whole.program.dtype(access.value),
        )


def _stored(program: GraphProgram) -> set[str]:
    """Names of the values that are in memory without fusion: stored by loops, or made by calls."""
    stores = {
        store.access.value
        for kernel in plan(program).kernels
        for store in (*kernel.element_stores, *kernel.row_stores)
    }
    return stores | {op.name for op in program.ops.values() if op.call}


def _depending(program: GraphProgram, call: Op) -> set[str]:
    """Names of the values that are computed from a call's result, and of the result."""
    found = {call.name}
    for op in program.ops.values():
        if found.intersection(op.operands):
            found.add(op.name)
    return found


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
