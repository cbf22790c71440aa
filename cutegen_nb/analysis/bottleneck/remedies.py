"""Strategies for each cause of a bottleneck.

Names are those of ``prompts/strategies.toml``, which also tells the workload classes of each strategy.
"""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass

_STREAMING = (WorkloadClass.ELEMENTWISE, WorkloadClass.LOSS, WorkloadClass.FUSED, WorkloadClass.OTHER)
_ROWS = (WorkloadClass.REDUCTION, WorkloadClass.SOFTMAX, WorkloadClass.NORM)
_PRODUCTS = (WorkloadClass.MATMUL, WorkloadClass.CONVOLUTION, WorkloadClass.ATTENTION)
_WITH_PRODUCTS = (*_PRODUCTS, WorkloadClass.FUSED)
_WINDOWS = (WorkloadClass.POOLING, WorkloadClass.CONVOLUTION)

FITS: dict[str, tuple[WorkloadClass, ...]] = {
    "algebra-first": (WorkloadClass.FUSED,),
    "coalesced-access": (*_STREAMING, *_ROWS),
    "vectorise-128": (*_STREAMING, *_ROWS, WorkloadClass.POOLING),
    "several-vectors-in-flight": (*_STREAMING, *_ROWS),
    "grid-stride": (
        WorkloadClass.ELEMENTWISE,
        WorkloadClass.LOSS,
        WorkloadClass.REDUCTION,
        WorkloadClass.OTHER,
    ),
    "fuse-one-pass": (*_STREAMING, WorkloadClass.SOFTMAX, WorkloadClass.NORM),
    "row-in-registers": (*_ROWS, WorkloadClass.LOSS),
    "online-one-pass": (*_ROWS, WorkloadClass.LOSS),
    "several-rows-a-cta": _ROWS,
    "split-reduction": (*_ROWS, WorkloadClass.LOSS),
    "columns-across-threads": _ROWS,
    "shared-memory-tiles": _WITH_PRODUCTS,
    "register-blocking": _WITH_PRODUCTS,
    "vectorised-tile-loads": _PRODUCTS,
    "double-buffered-tiles": _PRODUCTS,
    "tensor-core-mma": _WITH_PRODUCTS,
    "split-k": (WorkloadClass.MATMUL, WorkloadClass.CONVOLUTION),
    "skip-empty-tiles": (WorkloadClass.MATMUL, WorkloadClass.ATTENTION),
    "scores-stay-on-chip": (WorkloadClass.ATTENTION,),
    "implicit-product": (WorkloadClass.CONVOLUTION,),
    "reuse-the-window": _WINDOWS,
    "block-scan": (WorkloadClass.SCAN,),
    "pad-or-swizzle": (),
    "fewer-live-values": (),
    "wgmma-in-flight": _WITH_PRODUCTS,
    "more-ctas": (),
    "uniform-branches": (),
    "smaller-ctas": (),
    "tune-values-per-thread": (),
    "tune-tile-shape": (*_PRODUCTS, WorkloadClass.POOLING, WorkloadClass.FUSED),
    "tune-unrolling": (),
    "tune-cta-size": (),
    "tune-stages": _PRODUCTS,
    "tune-grid": (),
}
"""Workload classes of each strategy; an empty tuple means any class."""

_ANSWERS: dict[str, tuple[str, ...]] = {
    "uncoalesced": ("coalesced-access", "columns-across-threads", "vectorised-tile-loads", "vectorise-128"),
    "repeated-requests": (
        "shared-memory-tiles", "row-in-registers", "online-one-pass", "reuse-the-window", "block-scan",
        "fuse-one-pass", "register-blocking", "implicit-product", "tune-tile-shape",
    ),
    "extra-traffic": ("scores-stay-on-chip", "fuse-one-pass", "online-one-pass", "algebra-first"),
    "bank-conflicts": ("pad-or-swizzle", "vectorised-tile-loads"),
    "shared-reuse": ("register-blocking", "tensor-core-mma", "reuse-the-window"),
    "divergence": ("uniform-branches", "several-rows-a-cta", "skip-empty-tiles"),
    "instruction-overhead": (
        "vectorise-128", "tensor-core-mma", "register-blocking", "several-vectors-in-flight", "grid-stride",
        "skip-empty-tiles", "tune-values-per-thread", "tune-unrolling",
    ),
    "too-few-ctas": ("more-ctas", "split-reduction", "split-k"),
    "tail-effect": ("grid-stride", "smaller-ctas", "tune-grid"),
    "occupancy": (
        "fewer-live-values", "smaller-ctas", "double-buffered-tiles", "several-vectors-in-flight",
        "tune-cta-size",
    ),
    "spills": ("fewer-live-values", "smaller-ctas", "tune-unrolling"),
    "serialised-wgmma": ("wgmma-in-flight",),
    "unpipelined-loads": ("double-buffered-tiles", "several-vectors-in-flight", "tune-stages"),
    "memory-latency": (
        "several-vectors-in-flight", "vectorise-128", "double-buffered-tiles", "tune-values-per-thread",
    ),
    "narrow-accesses": ("vectorise-128", "vectorised-tile-loads"),
    "launch-bound": ("fuse-one-pass",),
}  # fmt: skip
"""Strategies for each cause, the likeliest first."""
_SHOWN = 3
"""Most strategies that are named for a cause."""


def strategies_for(cause: str, workload_class: WorkloadClass) -> tuple[str, ...]:
    """Return the strategies that answer a cause in a workload class, the likeliest first; at most three."""
    fitting = [name for name in _ANSWERS.get(cause, ()) if not FITS[name] or workload_class in FITS[name]]
    return tuple(fitting[:_SHOWN])
