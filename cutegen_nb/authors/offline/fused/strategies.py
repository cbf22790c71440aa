"""Strategies for fused loops: their order, and the counters that each should move."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.authors.offline.fused.loops import loop_nest
from cutegen_nb.authors.offline.fused.lowering import Axis
from cutegen_nb.authors.offline.fused.plan import KernelPlan, PlannedKernel
from cutegen_nb.authors.offline.fused.residence import residence
from cutegen_nb.authors.offline.fused.rows_text import is_strided
from cutegen_nb.authors.offline.fused.splits import FEW_THREADS, is_uneven
from cutegen_nb.authors.offline.fused.variants import (
    CLUSTER,
    COALESCED,
    CTA_PER_ROW,
    GRID_STRIDE,
    IN_FLIGHT,
    ON_CHIP,
    ONE_PASS,
    OVER_GRID,
    SIMPLEST,
    SPLIT,
    VECTORISE,
    WARP_PER_ROW,
    KernelVariant,
    fold,
)
from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Strategy

_FIRST = {
    "thread": "The simplest kernel that is right.",
    "warp": "The simplest kernel that is right and keeps the GPU busy: a warp takes each row.",
    "cta": "The simplest kernel that is right and keeps the GPU busy: a CTA takes each row, or a part of it.",
}
"""Rationale of a first kernel, by the threads that share a row."""
HOPPER = ("sm_90",)
"""Architectures with clusters of CTAs for which kernels are written."""
BUT_HOPPER = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_100", "sm_103", "sm_120", "sm_121")
"""Architectures of the strategies that a cluster replaces."""


@dataclass(frozen=True, slots=True)
class StrategySequence:
    """Start variant of a problem and the strategies that may follow."""

    start: KernelVariant
    """Variant of the first kernel."""
    strategies: tuple[Strategy, ...]
    """Strategies, in order."""

    @property
    def rationale(self) -> str:
        """Reason for the first kernel."""
        return _FIRST[self.start.lanes]

    def restated(self, name: str, statement: str) -> StrategySequence:
        """Return the sequence with another statement of one strategy."""
        changed = [
            replace(item, statement=statement) if item.name == name else item for item in self.strategies
        ]
        return replace(self, strategies=tuple(changed))


def _strategy(name: str, statement: str, *effects: str) -> Strategy:
    """Build a strategy; `effects` are counters with a sign: ``-gmem_requests``."""
    return Strategy(
        name=name,
        statement=statement,
        bounds=(Bound.MEMORY, Bound.LATENCY),
        effects=tuple(
            ExpectedEffect(counter=item[1:], direction=Direction.DOWN if item[0] == "-" else Direction.UP)
            for item in effects
        ),
        source="library",
    )


ELEMENTWISE = {
    COALESCED: _strategy(
        COALESCED,
        "Count elements along the contiguous dimension, so that a warp's 32 accesses fall into as "
        "few 32-byte sectors as their bytes need.",
        "-gmem_load_sectors",
        "-gmem_store_sectors",
    ),
    VECTORISE: _strategy(
        VECTORISE,
        "Load and store 128 bits a thread: a quarter of the memory instructions for fp32, an "
        "eighth for fp16.",
        "-gmem_requests",
        "-warp_instructions",
    ),
    IN_FLIGHT: _strategy(
        IN_FLIGHT,
        "Let each thread issue four vector loads before it uses the first, so that more bytes are "
        "in flight and the index arithmetic is shared.",
        "-warp_instructions",
        "-latency_ms",
    ),
    GRID_STRIDE: _strategy(
        GRID_STRIDE,
        "Launch fewer CTAs and let each loop over the tensor with the grid's stride: start-up "
        "costs are paid once a thread.",
        "-warp_instructions",
        "-latency_ms",
    ),
}
"""Strategies for element-wise kernels, by name."""


_EVEN = (
    "Share each row among several CTAs whose partial results a second kernel joins: with shorter CTAs in "
    "more waves, SMs idle less at the end."
)
"""Statement of a split of rows that are enough to occupy the GPU."""

ROWS = {
    WARP_PER_ROW: _strategy(
        WARP_PER_ROW,
        "Give each row to a warp whose lanes take neighbouring columns and join their parts by "
        "exchanges: 32 accesses share a few sectors instead of touching one each.",
        "-gmem_load_sectors",
    ),
    CTA_PER_ROW: _strategy(
        CTA_PER_ROW,
        "Give each row to a CTA whose threads take neighbouring columns; warps join their parts "
        "through shared memory.",
        "-gmem_load_sectors",
    ),
    COALESCED: _strategy(
        COALESCED,
        "Let neighbouring threads take neighbouring columns instead of a run each, so that a "
        "warp's accesses share sectors.",
        "-gmem_load_sectors",
    ),
    VECTORISE: _strategy(
        VECTORISE,
        "Load and store 128 bits a thread: a quarter of the memory instructions for fp32, an "
        "eighth for fp16.",
        "-gmem_requests",
        "-warp_instructions",
    ),
    ONE_PASS: _strategy(
        ONE_PASS,
        "Read each row once for its reductions: keep it in registers where it fits, otherwise run "
        "dependent reductions together (online softmax; mean and deviations around the first "
        "element).",
        "-gmem_load_sectors",
    ),
    ON_CHIP: _strategy(
        ON_CHIP,
        "Copy each row to the CTA's shared memory once, all copies under way together, and take its "
        "statistics and its outputs from there.",
        "-gmem_load_sectors",
    ),
    CLUSTER: replace(
        _strategy(
            CLUSTER,
            "Divide each row over the CTAs of a cluster, which copy it to their shared memory once and "
            "join their statistics through each other's.",
            "-gmem_load_sectors",
        ),
        architectures=HOPPER,
    ),
    OVER_GRID: replace(
        _strategy(
            OVER_GRID,
            "Divide each row over many CTAs that all run at once and keep it in their shared memory: they "
            "join their statistics through global memory, and each loads its part of the next row while it "
            "stores this one.",
            "-latency_ms",
        ),
        architectures=HOPPER,
    ),
    SPLIT: _strategy(
        SPLIT,
        "Share each row among several CTAs whose partial results a second kernel joins, so that "
        "few long rows still occupy every SM.",
        "-latency_ms",
    ),
    IN_FLIGHT: _strategy(
        IN_FLIGHT,
        "Unroll the loop over a row, so that a thread has several loads in flight and "
        "pays for the loop once in several turns.",
        "-warp_instructions",
        "-latency_ms",
    ),
}
"""Strategies for kernels over rows, by name."""

FEW_ROWS = 512
"""Number of rows below which most of a GPU's threads are idle when a thread or a warp takes a row."""
FEW_CTAS = 64
"""Number of CTAs below which most of a GPU's SMs are idle."""
LONG_ROW = 2048
"""Number of columns from which a row keeps a CTA busy."""
LONGEST_WALK = 4096
"""Largest number of columns of a row that one thread walks in a first kernel, where the tensor is large."""
SMALL = 2**25
"""Number of elements that one thread a row reads in some 20 ms even where there are a thousand rows."""


def ladder(plan: KernelPlan) -> StrategySequence:
    """Choose the strategies for the plan's largest reduction, or for its element-wise kernels."""
    reducing = [kernel for kernel in plan.kernels if kernel.reductions]
    if reducing:
        return _row_ladder(max(reducing, key=lambda kernel: _size((*kernel.rows, *kernel.cols))), plan)
    # Beside operators the loops are no lesson: uncoalesced they took 89 of 94 ms of a SqueezeNet module.
    uncoalesced = _only_loops(plan) and any(
        len(loop_nest(kernel, merge=False).all) > 1 for kernel in plan.kernels
    )
    names = ([COALESCED] if uncoalesced else []) + [VECTORISE, IN_FLIGHT, GRID_STRIDE]
    start = SIMPLEST if uncoalesced else KernelVariant(coalesced=True)
    return StrategySequence(start, tuple(ELEMENTWISE[name] for name in names))


def _only_loops(plan: KernelPlan) -> bool:
    """Return whether no call of an operator stands among the plan's steps."""
    return len(plan.kernels) == len(plan.steps)


def _size(axes: tuple[Axis, ...]) -> int:
    return elements([axis.extent for axis in axes]).full


def _row_ladder(kernel: PlannedKernel, plan: KernelPlan) -> StrategySequence:
    rows, cols = _size(kernel.rows), _size(kernel.cols)
    # Each pass reads the rows once; stores of elements read them once more.
    rereads = len(kernel.passes) + (1 if kernel.element_stores else 0) > 1
    once = [ONE_PASS] if rereads else []
    if is_strided(kernel, loop_nest(kernel)):
        if rows >= FEW_THREADS:
            even = [SPLIT] if not rereads and is_uneven(rows, cols) else []
            steps = _sequence(KernelVariant(coalesced=True), [*once, VECTORISE, *even, IN_FLIGHT])
            return steps.restated(SPLIT, _EVEN)
        # One thread a row is too few, and vectors leave a quarter of them. Beside operators it is no lesson.
        start = KernelVariant(coalesced=True, split=not _only_loops(plan) and rows * cols > SMALL)
        return _sequence(start, [*once, SPLIT, VECTORISE, IN_FLIGHT])
    room = residence(kernel, plan)
    kept = room is not None and rows * room.ctas >= FEW_CTAS
    if rows < FEW_ROWS:
        # Too few rows for the GPU: several CTAs share each from the start, unless a cluster will keep it.
        start = KernelVariant(lanes="cta", coalesced=True, split=not kept)
        names = [VECTORISE, *once, IN_FLIGHT]
    else:
        start, wider = _start_of_rows(rows, cols)
        names = [*wider, VECTORISE, *once, IN_FLIGHT]
    if room is None or not kept:
        return _sequence(start, names)
    if room.in_cta:
        return _sequence(start, [*(name for name in names if name not in (ONE_PASS, IN_FLIGHT)), ON_CHIP])
    others = [name for name in (ONE_PASS, SPLIT, IN_FLIGHT) if name in names or rows < FEW_ROWS]
    steps = _sequence(start, [*(name for name in names if name not in others), CLUSTER, OVER_GRID])
    elsewhere = tuple(replace(ROWS[name], architectures=BUT_HOPPER) for name in others)
    return StrategySequence(start, (*steps.strategies, *elsewhere))


def _start_of_rows(rows: int, cols: int) -> tuple[KernelVariant, list[str]]:
    """Choose the first kernel for many contiguous rows, and the strategies that add threads to a row.

    One thread a row is the simplest; on a large tensor it must not take seconds.
    """
    wider = CTA_PER_ROW if cols >= LONG_ROW else WARP_PER_ROW
    if rows * cols <= SMALL or (rows >= FEW_THREADS and cols <= LONGEST_WALK):
        return SIMPLEST, [wider]
    return fold(SIMPLEST, (wider,)), []


def _sequence(start: KernelVariant, names: list[str]) -> StrategySequence:
    return StrategySequence(start, tuple(ROWS[name] for name in names))
