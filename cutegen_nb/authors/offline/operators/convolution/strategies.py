"""Strategies for convolutions: their names, statements and expected effects."""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Optimisation, Strategy, lowers

TILES = "implicit-gemm-tiles"
TENSOR = "channels-last-tensor-cores"
MULTISTAGE = "multistage-gather"
SHIFTED = "shifted-wgmma"

_CLASSES = (WorkloadClass.CONVOLUTION, WorkloadClass.FUSED)

_LAYOUT = (
    "Copy the input with its channels last, 16 bytes of them to a chunk, so that a tap of a filter reads "
    "contiguous chunks. The convolution is then a product of pixels by output channels whose rows are "
    "gathered: cp.async fetches the chunks of each tap, zeros where it lies in the padding. "
)
_PARTS = (
    " The copy holds each number as the sum of two of fp16, scaled by a power of two for each image and each "
    "filter: the three products that count give fp32's accuracy, and fp32 additions collect short sums."
)


def _parts(dtype: str) -> str:
    return _PARTS if dtype == "float32" else ""


def _tensor(dtype: str) -> Strategy:
    """First kernel on tensor cores by mma.sync."""
    return Strategy(
        name=TENSOR,
        statement=f"{_LAYOUT}The tensor cores multiply, and sums stay in fp32.{_parts(dtype)}",
        classes=_CLASSES,
        effects=lowers("gmem_load_sectors", "warp_instructions"),
        absent=(Optimisation.TENSOR_CORES,),
    )


def _shifted(dtype: str) -> Strategy:
    """Kernel for Hopper."""
    return Strategy(
        name=SHIFTED,
        statement="Copy the input in chunks of 8 channels, padding included, with all pixels in a row: "
        "a tap of a filter is then a shift; outputs in the padding are computed and left out. One warp "
        "brings pixels and filters by bulk copies. One load of pixels serves all taps along the last "
        "dimension: Hopper's tensor cores (wgmma) read each from its own first row."
        f"{_parts(dtype)}",
        classes=_CLASSES,
        effects=lowers("gmem_load_sectors", "warp_instructions", "latency_ms"),
        architectures=("sm_90",),
        absent=(Optimisation.TENSOR_CORES,),
    )


TILES_STRATEGY = Strategy(
    name=TILES,
    statement="Take the convolution for a product of pixels by output channels: stage tiles of the input, "
    "gathered tap by tap, and of the weights in shared memory, and give each thread up to 4 × 4 outputs in "
    "registers, so that a number loaded from global memory serves up to 64 outputs.",
    classes=_CLASSES,
    effects=lowers("gmem_load_sectors", "warp_instructions"),
    absent=(Optimisation.SHARED_TILES,),
    excludes=(Optimisation.TENSOR_CORES,),
)

TENSOR_STRATEGIES = {dtype: _tensor(dtype) for dtype in ("float32", "float16", "bfloat16")}
"""First kernel on tensor cores, by dtype."""

SHIFTED_STRATEGIES = {dtype: _shifted(dtype) for dtype in ("float32", "float16", "bfloat16")}
"""Kernel for Hopper, by dtype."""

MULTISTAGE_STRATEGY = Strategy(
    name=MULTISTAGE,
    statement="Keep several stages of gathered tiles in shared memory: while one is multiplied, cp.async "
    "fetches the next, and one barrier a tile is enough.",
    classes=_CLASSES,
    effects=lowers("barriers", "latency_ms"),
    absent=(Optimisation.PIPELINED,),
    present=(Optimisation.TENSOR_CORES,),
)
