"""Strategies for attention, in words."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.strategy import Bound, Optimisation, Strategy, lowers

TILES = "attention-tiles"
PIPELINE = "attention-pipeline"
WGMMA = "attention-wgmma"
PARTS = "attention-fp16x2"
PRODUCTS = "attention-products"


def _strategy(
    name: str,
    statement: str,
    effects: str,
    *,
    absent: Optimisation,
    present: tuple[Optimisation, ...] = (),
) -> Strategy:
    """Build a strategy for every GPU; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        bounds=(Bound.MEMORY, Bound.COMPUTE, Bound.LATENCY),
        effects=lowers(*effects.split()),
        absent=(absent,),
        present=present,
    )


_TILES = (
    "Multiply blocks of queries and keys on the tensor cores from swizzled tiles in shared memory{}. The "
    "softmax is corrected block by block and the outputs stay in registers, so that no score reaches memory."
)

TILE_STRATEGIES = {
    "float32": _strategy(
        TILES,
        _TILES.format(", with float32's accuracy: three TF32 products of the factors' upper and lower bits"),
        "gmem_load_sectors warp_instructions",
        absent=Optimisation.TENSOR_CORES,
    ),
    "float16": _strategy(
        TILES,
        _TILES.format(", read by ldmatrix, with sums in float32"),
        "gmem_load_sectors warp_instructions",
        absent=Optimisation.TENSOR_CORES,
    ),
}
"""First kernel on tensor cores by the operands' dtype; bfloat16 is as float16."""

PIPELINE_STRATEGY = _strategy(
    PIPELINE,
    "Keep two stages of tiles in shared memory: while one is multiplied, cp.async fills the other, across "
    "the softmax too, and one barrier a step is enough.",
    "barriers latency_ms",
    absent=Optimisation.PIPELINED,
    present=(Optimisation.TENSOR_CORES,),
)

_HOPPER = ("sm_90",)

WGMMA_STRATEGY = replace(
    _strategy(
        WGMMA,
        "Multiply on Hopper's tensor cores (wgmma): one warp loads blocks of keys and values by the tensor "
        "memory accelerator, the other warp groups have 64 queries each. Scores, weights and outputs stay in "
        "registers, and the softmax of the next block runs while the tensor cores add the values of the "
        "present one.",
        "warp_instructions barriers latency_ms",
        absent=Optimisation.TENSOR_CORES,
    ),
    dtypes=("float16", "bfloat16"),
    architectures=_HOPPER,
)
"""Attention of 16-bit numbers by TMA and wgmma."""

PARTS_STRATEGY = replace(
    WGMMA_STRATEGY,
    name=PARTS,
    statement="Write queries, keys and values as sums of two fp16 numbers each, scaled by a power of two, "
    "and multiply on Hopper's tensor cores (TMA and wgmma), three products for one of float32. The weights "
    "are split in registers, no score reaches memory, and float32 additions collect the blocks: float32's "
    "accuracy.",
    dtypes=("float32",),
)
"""Attention of float32 numbers by TMA and wgmma."""

PRODUCTS_STRATEGY = replace(
    _strategy(
        PRODUCTS,
        "Compute scores and outputs as two matrix products on Hopper's tensor cores, each factor as the sum "
        "of two fp16 numbers, with the softmax between them in place of the scores. The sums of heads this "
        "wide do not fit in registers beside tiles that keep wgmma busy, and the scores are few.",
        "warp_instructions latency_ms",
        absent=Optimisation.TENSOR_CORES,
    ),
    dtypes=("float32",),
    architectures=_HOPPER,
)
"""Attention of wide float32 heads by two products in float32's accuracy."""
