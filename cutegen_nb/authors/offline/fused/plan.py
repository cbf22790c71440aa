"""Kernel fusion plan: the kernels of a program, with the loads, reductions and stores of each, and its calls.

Reductions over the same dimensions of the same shape share a kernel where one needs the other only as a
number of its own row. Element-wise work joins the kernel whose rows it runs over. Values that cannot join are
stored between kernels. A call (of a generated function or of PyTorch's) is a step of its own between the
kernels: what it takes is stored before it. The operands of a concatenation are stored side by side in one
tensor, each by the kernel that makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from cutegen_nb.authors.offline.expressions.expressions import Expr, Leaf, ValueType, kind_of, leaves
from cutegen_nb.authors.offline.fused.accumulators import Reduction, states
from cutegen_nb.authors.offline.fused.lowering import (
    Axis,
    ExpressionLowering,
    Index,
    NotIndexableError,
    OperandAccess,
    SplitNeededError,
    regroup,
)
from cutegen_nb.authors.offline.graph.in_place import taken_in_place
from cutegen_nb.authors.offline.graph.ir import Extent, GraphProgram, HostCall, Name, Op, Shape, elements
from cutegen_nb.authors.offline.graph.pitches import Pitch, pitches
from cutegen_nb.core.errors import Declined

KEPT_AS = {
    ValueType.F32: "float32",
    ValueType.F64: "float64",
    ValueType.I32: "int32",
    ValueType.I64: "int64",
    ValueType.BOOL: "bool",
}
"""Lossless dtype in memory for each type in registers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValue:
    """Expression and the place where it is stored."""

    access: OperandAccess
    """Value and index."""
    expr: Expr
    """Expression of one element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedKernel:
    """Kernel over an iteration space of rows × columns; an element-wise kernel has rows only."""

    rows: tuple[Axis, ...]
    """Axes that are kept, slowest first."""
    cols: tuple[Axis, ...]
    """Axes that are reduced, slowest first."""
    passes: tuple[tuple[Reduction, ...], ...]
    """Reductions that can run together, in the order of their dependences."""
    element_stores: tuple[StoredValue, ...]
    """Values stored for each row and column."""
    row_stores: tuple[StoredValue, ...]
    """Values stored once a row."""
    loads: tuple[OperandAccess, ...]
    """All loads, in order of first use."""
    counts: tuple[tuple[str, Extent], ...]
    """Numbers made of extents, by the name in the expressions."""

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """Reductions of all passes."""
        return tuple(item for group in self.passes for item in group)

    @property
    def accesses(self) -> tuple[OperandAccess, ...]:
        """Loads, then stores."""
        return (*self.loads, *(store.access for store in (*self.element_stores, *self.row_stores)))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlan:
    """Kernels and calls in their order in ``forward``."""

    program: GraphProgram
    """Program that they compute."""
    steps: tuple[PlannedKernel | Op, ...]
    """Kernels, and operations that are calls; at least one."""
    host_views: tuple[Op, ...]
    """Views of memory that the host makes, in order."""
    in_place: AbstractSet[str]
    """Views among them that need not be dense: only functions that take any strides use them."""
    temporaries: tuple[str, ...]
    """Operations stored between kernels that are no output, and that no call takes."""
    pitches: Mapping[str, Pitch]
    """Tensors of element-wise kernels that lie in a larger one, with the gaps in their memory."""

    @property
    def joined(self) -> Mapping[str, Op]:
        """Concatenations by the names of their parts."""
        ops = self.program.ops.values()
        return {part: op for op in ops if op.op == "cat" for part in op.operands}

    @property
    def kernels(self) -> tuple[PlannedKernel, ...]:
        """The kernels among the steps."""
        return tuple(step for step in self.steps if isinstance(step, PlannedKernel))

    def dtype(self, name: str) -> str:
        """Dtype in memory; a value stored between kernels keeps its precision: an fp16 sum stays fp32."""
        dtype = self.program.dtype(name)
        return KEPT_AS[kind_of(dtype)] if name in self.temporaries else dtype


@dataclass(slots=True)
class _Draft:
    shape: Shape
    reduced: tuple[int, ...]
    axes: list[list[Axis]]
    reductions: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)

    @property
    def row_axes(self) -> tuple[Axis, ...]:
        return tuple(a for at, axes in enumerate(self.axes) if at not in self.reduced for a in axes)

    @property
    def col_axes(self) -> tuple[Axis, ...]:
        return tuple(a for at in self.reduced for a in self.axes[at])

    def split(self, axis: Axis, inner: Extent) -> None:
        """Replace an axis by two."""
        pair = [Axis(axis.extent // inner), Axis(inner)]
        self.axes = [
            [part for item in dim for part in (pair if item is axis else [item])] for dim in self.axes
        ]


def _draft(shape: Shape, reduced: tuple[int, ...]) -> _Draft:
    return _Draft(shape, reduced, [[] if extent.is_one else [Axis(extent)] for extent in shape])


class _Planner:
    def __init__(self, program: GraphProgram, *, fuse: bool, merge: bool) -> None:
        self.program = program
        self.fuse, self.merge = fuse, merge
        self.host_views: set[str] = set()
        self.calls = {op.name for op in program.ops.values() if op.call}
        self.joined = {op.name for op in program.ops.values() if op.op == "cat"}
        self.targets = {part for name in self.joined for part in program.ops[name].operands}
        self.in_place = taken_in_place(program)
        for name in program.outputs:
            self._keep(name)
        for call in self.calls:
            for name in program.ops[call].operands:
                self._keep(name, program.ops[call].call)
        # A kernel reads such a view from memory in any plan: found one by one, each would restart the plan.
        for name, op in program.ops.items():
            if op.op.startswith("host_view") and name not in self.host_views:
                self._store_operand_of(name)
        self.drafts: list[_Draft | Op] = []
        self.producer: dict[str, int] = {}

    def plan(self) -> KernelPlan:
        # Each restart stores one more value, so there are at most as many as there are operations.
        for _ in range(len(self.program.ops) + 1):
            try:
                return self._attempt()
            except NotIndexableError as problem:
                self._store_operand_of(problem.value)
        raise Declined("the offline author could not divide this graph into kernels")

    def _keep(self, name: str, call: HostCall | None = None) -> None:
        """Store a value in memory, because a call takes it or because it is an output."""
        if name in self.program.buffers or name in self.made or self.program.ops[name].reduction:
            return
        op = self.program.ops[name]
        library = call is not None and not call.function
        strided = name in self.in_place or (library and op.op == "permute")
        if op.op in ("view", "spread") or op.op.startswith("host_view") or strided:
            self.host_views.add(name)
            self._keep(op.operands[0], call)
        else:
            self.targets.add(name)

    def _store_operand_of(self, view: str) -> None:
        source = self.program.ops[view].operands[0]
        self.host_views.add(view)
        self.targets.discard(view)
        if source in self.program.buffers or source in self.host_views | self.made:
            return
        op = self.program.ops[source]
        if op.op == "view" and set(op.operands) <= self.made | self.host_views | self.program.buffers.keys():
            self.host_views.add(source)  # nothing is to be computed: a kernel would copy
        elif not op.reduction:
            self.targets.add(source)

    @property
    def made(self) -> set[str]:
        """Results of calls, and concatenations."""
        return self.calls | self.joined

    @property
    def stored(self) -> frozenset[str]:
        return frozenset(self.host_views | self.targets | self.made)

    def _attempt(self) -> KernelPlan:
        self.drafts, self.producer = [], {}
        for op in self.program.ops.values():
            if op.name in self.host_views:
                self.producer[op.name] = self.producer.get(op.operands[0], -1)
            elif op.call:
                self.drafts.append(op)
                self.producer[op.name] = len(self.drafts) - 1
            elif op.op == "cat":
                self.producer[op.name] = max(self.producer[part] for part in op.operands)
            elif op.reduction:
                self._place_reduction(op)
            elif op.name in self.targets:
                self._place_target(op)
        kernels = {
            at: self._build(draft) for at, draft in enumerate(self.drafts) if isinstance(draft, _Draft)
        }
        read = {access.value for kernel in kernels.values() for access in kernel.loads}
        read |= {a for view in self.host_views for a in self.program.ops[view].operands}
        taken = {name for call in self.calls for name in self.program.ops[call].operands}
        wanted = read | taken | set(self.program.outputs)
        steps = tuple(
            draft if isinstance(draft, Op) else _with_results(kernels[at], draft, wanted, self)
            for at, draft in enumerate(self.drafts)
        )
        rows = {a.value for kernel in kernels.values() if kernel.reductions for a in kernel.loads}
        views = tuple(op for op in self.program.ops.values() if op.name in self.host_views)
        for view in reversed(views):
            taken.update(view.operands if view.name in taken else ())
        own = {*self.program.outputs, *self.host_views, *self.made, *taken}
        kept = [name for name in self.program.ops if name in self.producer and name in wanted]
        temporaries = tuple(name for name in kept if name not in own)
        return KernelPlan(
            program=self.program,
            steps=steps,
            host_views=views,
            in_place=self.in_place,
            temporaries=temporaries,
            pitches=pitches(self.program, views, rows | taken),
        )

    def _place_reduction(self, op: Op) -> None:
        source = op.args[0]
        assert isinstance(source, Name)
        shape = self.program.shape(source.name)
        for position in reversed(range(len(self.drafts))):
            draft = self.drafts[position]
            if not isinstance(draft, _Draft):
                continue
            if draft.shape == shape and draft.reduced == op.dims and draft.reductions:
                draft.reductions.append(op.name)
                if self._sound(draft, position):
                    self.producer[op.name] = position
                    return
                draft.reductions.pop()
        draft = _draft(shape, op.dims)
        draft.reductions.append(op.name)
        self._append(draft, op.name)

    def _place_target(self, op: Op) -> None:
        for position in reversed(range(len(self.drafts))):
            draft = self.drafts[position]
            if not isinstance(draft, _Draft):
                if op.op == "part":
                    # After the calls every part's extents are known, so that the whole can be allocated.
                    break
                continue
            if not self._fits(draft, op.shape) or (op.op == "part" and draft.reductions):
                continue
            draft.targets.append(op.name)
            if self._sound(draft, position):
                self.producer[op.name] = position
                return
            draft.targets.pop()
        draft = _draft(op.shape, ())
        draft.targets.append(op.name)
        self._append(draft, op.name)

    def _append(self, draft: _Draft, name: str) -> None:
        self.drafts.append(draft)
        self.producer[name] = len(self.drafts) - 1
        if not self._sound(draft, len(self.drafts) - 1):
            raise Declined("the offline author could not divide this graph into kernels")

    def _fits(self, draft: _Draft, shape: Shape) -> bool:
        if not draft.reductions:
            return draft.shape == shape
        rows = elements([axis.extent for axis in draft.row_axes])
        return elements(shape) == rows or (self.fuse and elements(shape) == elements(draft.shape))

    def _sound(self, draft: _Draft, position: int) -> bool:
        """Return whether the draft reads only values that earlier kernels wrote."""
        # Building may split axes of the draft; an unsound draft gets them back.
        saved = [list(dim) for dim in draft.axes]
        try:
            kernel = self._build(draft)
        except ValueError:
            draft.axes = saved
            return False
        early = all(
            access.value in self.program.buffers or self.producer.get(access.value, position) < position
            for access in kernel.loads
        )
        if not early or (not self.fuse and self._passes(kernel) > 1):
            draft.axes = saved
            return False
        return True

    def _passes(self, kernel: PlannedKernel) -> int:
        """Number of times that the kernel would read its rows for its reductions."""
        return len(states(kernel.passes, merge=self.merge))

    def _build(self, draft: _Draft) -> PlannedKernel:
        while True:
            try:
                return self._lowered(draft)
            except SplitNeededError as split:
                draft.split(split.axis, split.inner)

    def row_index(self, draft: _Draft, name: str) -> Index:
        """Index at which a reduction of this draft is held: its own rows."""
        keeps = len(self.program.shape(name)) == len(draft.shape)
        kept = [
            () if at in draft.reduced else tuple(axes)
            for at, axes in enumerate(draft.axes)
            if keeps or at not in draft.reduced
        ]
        return tuple(kept)

    def _lowered(self, draft: _Draft) -> PlannedKernel:
        rows, cols = draft.row_axes, draft.col_axes
        scalars = {name: self.row_index(draft, name) for name in draft.reductions}
        # A stored value is recomputed, not read back, in the kernel that writes it.
        stored = self.stored - set(draft.targets)
        lowering = ExpressionLowering(self.program, stored, scalars, cols)
        everywhere = tuple(tuple(axes) for axes in draft.axes)
        reductions = [self._reduction(lowering, name, everywhere) for name in draft.reductions]
        whole_rows: list[StoredValue] = []
        per_row: list[StoredValue] = []
        for name in draft.targets:
            shape = self.program.shape(name)
            whole = elements(shape) == elements(draft.shape) and (self.fuse or not draft.reductions)
            axes = tuple(axis for dim in draft.axes for axis in dim) if whole else rows
            index = regroup(axes, shape)
            store = StoredValue(
                access=OperandAccess(name, index, f"{name}_out"), expr=lowering.expr(name, index)
            )
            (whole_rows if whole else per_row).append(store)
        return PlannedKernel(
            rows=rows,
            cols=cols,
            passes=_levels(reductions),
            element_stores=tuple(whole_rows),
            row_stores=tuple(per_row),
            loads=tuple(lowering.accesses.values()),
            counts=tuple((name, extent) for extent, name in lowering.counts.items()),
        )

    def _reduction(self, lowering: ExpressionLowering, name: str, index: Index) -> Reduction:
        op = self.program.ops[name]
        return Reduction(name=name, how=op.reduction, expr=lowering.element(op, index), dtype=op.dtype)


def _with_results(kernel: PlannedKernel, draft: _Draft, wanted: set[str], planner: _Planner) -> PlannedKernel:
    """Add the stores of those reductions that other kernels need, or that are outputs."""
    stores = []
    for name in draft.reductions:
        if name in wanted:
            index = planner.row_index(draft, name)
            register = Leaf(name, kind_of(planner.program.dtype(name)))
            stores.append(StoredValue(access=OperandAccess(name, index, f"{name}_out"), expr=register))
    return replace(kernel, row_stores=(*kernel.row_stores, *stores))


def _levels(reductions: list[Reduction]) -> tuple[tuple[Reduction, ...], ...]:
    """Group reductions into passes: each follows the reductions whose result its element uses."""
    level: dict[str, int] = {}
    for item in reductions:
        level[item.name] = 1 + max((level[name] for name in leaves(item.expr) if name in level), default=-1)
    groups = range(max(level.values(), default=-1) + 1)
    return tuple(tuple(item for item in reductions if level[item.name] == at) for at in groups)


def plan(program: GraphProgram, *, fuse: bool = True, merge: bool = False) -> KernelPlan:
    """Plan the kernels of a program.

    With `fuse` off, every reduction that another depends on gets a kernel of its own. With `merge`, one that
    can run together with the other is the exception.

    Raises Declined, naming the operation, where there is no rule.
    """
    return _Planner(program, fuse=fuse, merge=merge).plan()
