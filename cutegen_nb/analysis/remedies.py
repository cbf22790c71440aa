"""Which strategies answer which cause.

Strategies are named as in ``prompts/strategies.toml``, which says for which classes of work each is meant.
"""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass

_STREAMING = (WorkloadClass.ELEMENTWISE, WorkloadClass.LOSS, WorkloadClass.FUSED, WorkloadClass.OTHER)
_ROWS = (WorkloadClass.REDUCTION, WorkloadClass.SOFTMAX, WorkloadClass.NORM)
_PRODUCTS = (WorkloadClass.MATMUL, WorkloadClass.CONVOLUTION, WorkloadClass.ATTENTION)
_WINDOWS = (WorkloadClass.POOLING, WorkloadClass.CONVOLUTION)

FITS: dict[str, tuple[WorkloadClass, ...]] = {
    "coalesced-access": _STREAMING,
    "vectorise-128": (*_STREAMING, *_ROWS, WorkloadClass.POOLING),
    "several-vectors-in-flight": (*_STREAMING, WorkloadClass.REDUCTION),
    "grid-stride": (
        WorkloadClass.ELEMENTWISE,
        WorkloadClass.LOSS,
        WorkloadClass.REDUCTION,
        WorkloadClass.OTHER,
    ),
    "fuse-one-pass": (*_STREAMING, WorkloadClass.SOFTMAX, WorkloadClass.NORM),
    "row-in-registers": (WorkloadClass.SOFTMAX, WorkloadClass.NORM),
    "online-one-pass": (WorkloadClass.SOFTMAX, WorkloadClass.NORM),
    "several-rows-a-cta": _ROWS,
    "split-reduction": (WorkloadClass.REDUCTION, WorkloadClass.LOSS),
    "columns-across-threads": _ROWS,
    "shared-memory-tiles": _PRODUCTS,
    "register-blocking": _PRODUCTS,
    "vectorised-tile-loads": _PRODUCTS,
    "double-buffered-tiles": _PRODUCTS,
    "tensor-core-mma": _PRODUCTS,
    "reuse-the-window": _WINDOWS,
    "block-scan": (WorkloadClass.SCAN,),
    "pad-or-swizzle": (),
    "fewer-live-values": (),
    "more-ctas": (),
    "uniform-branches": (),
    "smaller-ctas": (),
}
"""Classes each is meant for; none means any."""

_ANSWERS: dict[str, tuple[str, ...]] = {
    "uncoalesced": ("coalesced-access", "columns-across-threads", "vectorised-tile-loads", "vectorise-128"),
    "repeated-requests": (
        "shared-memory-tiles", "row-in-registers", "online-one-pass", "reuse-the-window", "block-scan",
        "fuse-one-pass", "register-blocking",
    ),
    "extra-traffic": ("fuse-one-pass", "online-one-pass"),
    "bank-conflicts": ("pad-or-swizzle", "vectorised-tile-loads"),
    "shared-reuse": ("register-blocking", "tensor-core-mma", "reuse-the-window"),
    "divergence": ("uniform-branches", "several-rows-a-cta"),
    "instruction-overhead": (
        "vectorise-128", "tensor-core-mma", "register-blocking", "several-vectors-in-flight", "grid-stride",
    ),
    "too-few-ctas": ("more-ctas", "split-reduction"),
    "tail-effect": ("grid-stride", "smaller-ctas"),
    "occupancy": ("fewer-live-values", "smaller-ctas", "double-buffered-tiles", "several-vectors-in-flight"),
    "unpipelined-loads": ("double-buffered-tiles", "several-vectors-in-flight"),
    "spills": ("fewer-live-values", "smaller-ctas"),
    "launch-bound": ("fuse-one-pass",),
}  # fmt: skip
_SHOWN = 3


def strategies_for(cause: str, workload_class: WorkloadClass) -> tuple[str, ...]:
    """Names of the strategies that answer a cause in such work, the likeliest first; at most three."""
    fitting = [name for name in _ANSWERS.get(cause, ()) if not FITS[name] or workload_class in FITS[name]]
    return tuple(fitting[:_SHOWN])
