"""Kernels of a program as text in a chosen variant, and the strategies that change that text."""

from __future__ import annotations

import math
from dataclasses import replace

from cutegen_nb.authors.offline.fused.emit_elementwise import emit_elementwise
from cutegen_nb.authors.offline.fused.emit_joining import emit_joining
from cutegen_nb.authors.offline.fused.emit_over_grid import RowsOverGrid, over_grid_fits
from cutegen_nb.authors.offline.fused.emit_resident import ResidentRows
from cutegen_nb.authors.offline.fused.emit_rows import RowKernel
from cutegen_nb.authors.offline.fused.emit_strided import StridedVectors
from cutegen_nb.authors.offline.fused.kernel_text import KernelRequest, KernelText
from cutegen_nb.authors.offline.fused.loops import loop_nest
from cutegen_nb.authors.offline.fused.plan import KernelPlan, PlannedKernel, plan
from cutegen_nb.authors.offline.fused.residence import residence
from cutegen_nb.authors.offline.fused.rows_text import is_strided
from cutegen_nb.authors.offline.fused.strategies import StrategySequence, ladder
from cutegen_nb.authors.offline.fused.variants import VECTORISE, KernelVariant, fold
from cutegen_nb.authors.offline.graph.ir import GraphProgram
from cutegen_nb.core.strategy import Strategy

Texts = tuple[KernelPlan, list[tuple[PlannedKernel, tuple[KernelText, ...]]]]
"""Plan, and the launches of each of its kernels."""


def sequence(program: GraphProgram) -> StrategySequence:
    """Strategies for the loops of a program, and the variant that they start from. Raises Declined."""
    return ladder(plan(program))


def menu(program: GraphProgram) -> tuple[Strategy, ...]:
    """List the strategies that change the loops of a program, in order. Raises Declined."""
    steps = sequence(program)
    kept: list[Strategy] = []
    for strategy in steps.strategies:
        chain = tuple(item.name for item in kept if _together(item, strategy))
        before = texts(program, fold(steps.start, chain))
        after = texts(program, fold(steps.start, (*chain, strategy.name)))
        if _differ(before, after) and not (strategy.name == VECTORISE and _no_vectors(after)):
            kept.append(strategy)
    return tuple(kept)


def _together(one: Strategy, other: Strategy) -> bool:
    """Return whether some architecture is offered both strategies."""
    either = one.architectures and other.architectures
    return not either or bool(set(one.architectures) & set(other.architectures))


def texts(program: GraphProgram, variant: KernelVariant) -> Texts:
    """Plan for a variant, and the launches of each of its kernels. Raises Declined."""
    chosen = plan(program, fuse=not variant.split, merge=variant.one_pass)
    return chosen, [
        (kernel, _emitted(KernelRequest(kernel=kernel, plan=chosen, variant=variant, name=name)))
        for kernel, name in zip(chosen.kernels, _kernel_names(chosen), strict=True)
    ]


def _launches(texts: Texts) -> list[KernelText]:
    return [text for _, group in texts[1] for text in group]


def _differ(before: Texts, after: Texts) -> bool:
    """Return whether any kernel's source, or a constant of it, changed."""
    old = [(text.source, sorted(text.constants.items())) for text in _launches(before)]
    return old != [(text.source, sorted(text.constants.items())) for text in _launches(after)]


def _no_vectors(texts: Texts) -> bool:
    """Return whether every vector would be one element long at the full size, because the size is odd."""
    lengths = [
        math.gcd(text.vector[0].extent.full, text.vector[1])
        for text in _launches(texts)
        if text.vector is not None
    ]
    return bool(lengths) and max(lengths) == 1


def _kernel_names(chosen: KernelPlan) -> list[str]:
    """Names ``elementwise`` or ``reduce_rows``, numbered where there are several of a kind."""
    kinds = ["reduce_rows" if kernel.reductions else "elementwise" for kernel in chosen.kernels]
    return [
        kind if kinds.count(kind) == 1 else f"{kind}_{kinds[: position + 1].count(kind)}"
        for position, kind in enumerate(kinds)
    ]


def _emitted(request: KernelRequest) -> tuple[KernelText, ...]:
    if not request.kernel.reductions:
        return (emit_elementwise(request),)
    room = residence(request.kernel, request.plan) if request.variant.on_chip else None
    if room is not None:
        # A row that is not kept whole is read again as seldom as possible: its reductions are merged.
        variant = replace(request.variant, one_pass=not room.whole)
        rows = RowKernel(replace(request, variant=variant), strided=False)
        if variant.over_grid and over_grid_fits(rows, room):
            return (RowsOverGrid(rows, room).text(),)
        return (ResidentRows(rows, room).text(),)
    strided = is_strided(request.kernel, loop_nest(request.kernel))
    rows = RowKernel(request, strided=strided)
    vectors = strided and request.variant.vectors and not rows.cached
    text = StridedVectors(rows).text() if vectors else rows.text()
    return (text, emit_joining(rows, f"{request.name}_join")) if request.variant.split else (text,)
