"""Strategies for convolutions: their names, statements and expected effects."""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Optimisation, Strategy

TILES = "implicit-gemm-tiles"
TENSOR = "channels-last-tensor-cores"
MULTISTAGE = "multistage-gather"
WGMMA = "gathered-wgmma"

_BUT_HOPPER = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_100", "sm_103", "sm_120", "sm_121")
"""Architectures with mma.sync and without wgmma: on Hopper it would stand in the way of wgmma."""


_LESS_WORK = tuple(
    ExpectedEffect(counter=name, direction=Direction.DOWN)
    for name in ("gmem_load_sectors", "warp_instructions", "latency_ms")
)

_LAYOUT = (
    "Copy the input with its channels last, 16 bytes of them to a chunk, so that a tap of a filter reads "
    "contiguous chunks. The convolution is then a product of pixels by output channels whose rows are "
    "gathered: cp.async fetches the chunks of each tap, zeros where it lies in the padding. "
)

TENSOR_STRATEGIES = {
    "float32": Strategy(
        name=TENSOR,
        statement=_LAYOUT
        + "Multiply on the tensor cores with fp32's accuracy: the copy holds each number as the sum "
        "of two of fp16, scaled by a power of two for each image and each filter, and the three products "
        "that count are added, 32 terms at a time, to sums in fp32.",
        classes=(WorkloadClass.CONVOLUTION, WorkloadClass.FUSED),
        effects=_LESS_WORK,
        architectures=_BUT_HOPPER,
        absent=(Optimisation.TENSOR_CORES,),
    ),
    "float16": Strategy(
        name=TENSOR,
        statement=_LAYOUT + "Multiply on the tensor cores, 16-bit factors as they are and sums in fp32.",
        classes=(WorkloadClass.CONVOLUTION, WorkloadClass.FUSED),
        effects=_LESS_WORK,
        architectures=_BUT_HOPPER,
        absent=(Optimisation.TENSOR_CORES,),
    ),
}
"""First kernel on tensor cores by dtype; bfloat16 is as float16."""

MULTISTAGE_STRATEGY = Strategy(
    name=MULTISTAGE,
    statement="Keep several stages of gathered tiles in shared memory: while one is multiplied, cp.async fetches the "
    "next, and one barrier a tile is enough.",
    classes=(WorkloadClass.CONVOLUTION, WorkloadClass.FUSED),
    effects=tuple(
        ExpectedEffect(counter=name, direction=Direction.DOWN) for name in ("barriers", "latency_ms")
    ),
    architectures=_BUT_HOPPER,
    absent=(Optimisation.PIPELINED,),
    present=(Optimisation.TENSOR_CORES,),
)

WGMMA_STRATEGIES = {
    "float32": Strategy(
        name=WGMMA,
        statement=_LAYOUT
        + "Hopper's tensor cores (wgmma) multiply straight from shared memory while cp.async "
        "fetches the next tiles. The copy holds each number as the sum of two of fp16, scaled by a power of two "
        "for each image and each filter: three products give fp32's accuracy, collected in fp32.",
        classes=(WorkloadClass.CONVOLUTION, WorkloadClass.FUSED),
        effects=_LESS_WORK,
        architectures=("sm_90",),
        absent=(Optimisation.TENSOR_CORES,),
    ),
    "float16": Strategy(
        name=WGMMA,
        statement=_LAYOUT
        + "Hopper's tensor cores (wgmma) multiply straight from shared memory while cp.async "
        "fetches the next tiles.",
        classes=(WorkloadClass.CONVOLUTION, WorkloadClass.FUSED),
        effects=_LESS_WORK,
        architectures=("sm_90",),
        absent=(Optimisation.TENSOR_CORES,),
    ),
}
"""Kernel for Hopper by dtype; bfloat16 is as float16."""
