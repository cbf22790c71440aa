"""Strategies for convolutions: their names, statements and expected effects."""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Optimisation, Strategy

TILES = "implicit-gemm-tiles"
TENSOR = "channels-last-tensor-cores"
MULTISTAGE = "multistage-gather"


def _strategy(
    name: str,
    statement: str,
    effects: str,
    *,
    absent: tuple[Optimisation, ...] = (),
    excludes: tuple[Optimisation, ...] = (),
    present: tuple[Optimisation, ...] = (),
) -> Strategy:
    """Build a strategy; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        classes=(WorkloadClass.CONVOLUTION, WorkloadClass.FUSED),
        effects=tuple(ExpectedEffect(counter=item, direction=Direction.DOWN) for item in effects.split()),
        absent=absent,
        excludes=excludes,
        present=present,
    )


_LAYOUT = (
    "Copy the input with its channels last, 16 bytes of them to a chunk, so that a tap of a filter reads "
    "contiguous chunks. The convolution is then a product of pixels by output channels whose rows are "
    "gathered: cp.async fetches the chunks of each tap, zeros where it lies in the padding. "
)

TENSOR_STRATEGIES = {
    "float32": _strategy(
        TENSOR,
        _LAYOUT + "Multiply on the tensor cores with fp32's accuracy: the copy holds each number as the sum "
        "of two of fp16, scaled by a power of two for each image and each filter, and the three products "
        "that count are added, 32 terms at a time, to sums in fp32.",
        "gmem_load_sectors warp_instructions",
        absent=(Optimisation.TENSOR_CORES,),
    ),
    "float16": _strategy(
        TENSOR,
        _LAYOUT + "Multiply on the tensor cores, 16-bit factors as they are and sums in fp32.",
        "gmem_load_sectors warp_instructions",
        absent=(Optimisation.TENSOR_CORES,),
    ),
}
"""First kernel on tensor cores by dtype; bfloat16 is as float16."""

MULTISTAGE_STRATEGY = _strategy(
    MULTISTAGE,
    "Keep several stages of gathered tiles in shared memory: while one is multiplied, cp.async fetches the "
    "next, and one barrier a tile is enough.",
    "barriers latency_ms",
    absent=(Optimisation.PIPELINED,),
    present=(Optimisation.TENSOR_CORES,),
)
