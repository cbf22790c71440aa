"""Strategies for matrix products: their names, statements, preconditions and expected effects."""

from __future__ import annotations

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Bound, Optimisation, Strategy, lowers

# Names of the strategies.
TILES = "shared-memory-tiles"
TENSOR = "tensor-cores"
MULTISTAGE = "multistage-copies"
BLOCKING = "register-blocking"
VECTORS = "copies-128-bit"
PIPELINE = "double-buffered-tiles"
SPLIT = "split-k"
SKIP = "skip-zero-tiles"
WGMMA = "tma-wgmma"
THREE_PRODUCTS = "three-fp16-products"
SPLIT_IN_REGISTERS = "split-in-registers"
ROWS = "cta-per-output"
ROW_VECTORS = "row-vectors-128-bit"
ROW_UNROLL = "row-vectors-in-flight"
FEW_ROWS = "weights-to-registers"


def _strategy(  # noqa: PLR0913 - the parts of a strategy
    name: str,
    statement: str,
    effects: str,
    *needs: str,
    absent: tuple[Optimisation, ...] = (),
    excludes: tuple[Optimisation, ...] = (),
    present: tuple[Optimisation, ...] = (),
) -> Strategy:
    """Build a strategy; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        classes=(WorkloadClass.MATMUL, WorkloadClass.FUSED),
        bounds=(Bound.MEMORY, Bound.COMPUTE, Bound.LATENCY),
        preconditions=needs,
        effects=lowers(*effects.split()),
        absent=absent,
        excludes=excludes,
        present=present,
    )


TILE_STRATEGY = _strategy(
    TILES,
    "Stage 16 × 16 tiles of A and B in shared memory, so that each element loaded from global memory "
    "serves 16 threads instead of one.",
    "gmem_load_sectors",
    absent=(Optimisation.SHARED_TILES,),
    excludes=(Optimisation.TENSOR_CORES,),
)

_TENSOR_EFFECTS = "gmem_load_sectors smem_wavefronts warp_instructions"
_CP_ASYNC = "cp.async moves 4, 8 or 16 bytes at a time, as alignment permits; 2 bytes go through registers"

TENSOR_STRATEGIES = {
    "float32": _strategy(
        TENSOR,
        "Multiply on the tensor cores with the accuracy of fp32: split each factor in registers into the "
        "upper bits that TF32 holds and the exact rest, and add three TF32 products, low·high, high·low and "
        "high·high. A warp keeps up to 64 × 32 outputs in registers and adds each tile of k to them in fp32.",
        _TENSOR_EFFECTS,
        _CP_ASYNC,
        absent=(Optimisation.TENSOR_CORES,),
    ),
    "float16": _strategy(
        TENSOR,
        "Multiply on the tensor cores: 16-bit factors as they are, sums in fp32. cp.async fills swizzled "
        "shared memory, ldmatrix reads fragments from it, a warp keeps up to 64 × 64 outputs in registers.",
        _TENSOR_EFFECTS,
        _CP_ASYNC,
        absent=(Optimisation.TENSOR_CORES,),
    ),
}
"""First kernel on tensor cores by the operands' dtype; bfloat16 is as float16."""

MULTISTAGE_STRATEGY = _strategy(
    MULTISTAGE,
    "Keep three stages of tiles in shared memory: while one is multiplied on the tensor cores, cp.async "
    "fills the next two. The fragments of the next block of k are read while the present ones are "
    "multiplied, and one barrier a tile is enough.",
    "barriers latency_ms",
    absent=(Optimisation.PIPELINED,),
    present=(Optimisation.TENSOR_CORES,),
)

BLOCK_STRATEGIES = (
    _strategy(
        BLOCKING,
        "Give each thread a block of up to 8 × 8 outputs in registers and each CTA a tile of up to "
        "128 × 128: a value read from shared memory is used up to eight times, 128 bits a read.",
        "smem_wavefronts warp_instructions gmem_load_sectors",
        excludes=(Optimisation.TENSOR_CORES,),
    ),
    _strategy(
        VECTORS,
        "Copy tiles 128 bits at a time, pad shared memory against bank conflicts of transposed stores, and "
        "store four outputs at once.",
        "gmem_requests warp_instructions",
        "rows of 16-byte multiples; other shapes keep one element a copy",
        excludes=(Optimisation.TENSOR_CORES,),
    ),
    _strategy(
        PIPELINE,
        "Keep two tiles in shared memory and load the next one into registers while the present one is "
        "multiplied: one barrier a tile instead of two, and the load's latency is hidden.",
        "barriers latency_ms",
        excludes=(Optimisation.TENSOR_CORES,),
    ),
)
"""Strategies for a product that is too narrow for tensor cores, in order."""

SPLIT_STRATEGY = _strategy(
    SPLIT,
    "Let several CTAs share the depth of one tile and add their partial sums in a second kernel, in a fixed "
    "order, so that a deep product with few tiles fills the GPU.",
    "latency_ms",
    "few tiles and a deep k",
)

SKIP_STRATEGY = _strategy(
    SKIP,
    "Do not multiply tiles of which the triangle that follows keeps nothing: nearly half of them.",
    "gmem_load_sectors warp_instructions",
    "a triangle (triu, tril) after the product",
)

HOPPER_STRATEGIES = (
    Strategy(
        name=WGMMA,
        statement="Multiply on Hopper's tensor cores straight from shared memory (wgmma), while one warp "
        "loads the next tiles by the tensor memory accelerator, one instruction a tile.",
        classes=(WorkloadClass.MATMUL, WorkloadClass.FUSED),
        dtypes=("float16", "bfloat16"),
        architectures=("sm_90",),
        absent=(Optimisation.TENSOR_CORES,),
        effects=lowers("warp_instructions", "latency_ms"),
    ),
    Strategy(
        name=THREE_PRODUCTS,
        statement="Write each float32 factor as the sum of two fp16 numbers, scaled by a power of two for "
        "each row, and add the three products that count on Hopper's tensor cores (TMA and wgmma). 22 of "
        "float32's 24 bits are kept, and float32 additions collect sums of 64 terms: its accuracy.",
        classes=(WorkloadClass.MATMUL, WorkloadClass.FUSED),
        dtypes=("float32",),
        architectures=("sm_90",),
        absent=(Optimisation.TENSOR_CORES,),
        effects=lowers("warp_instructions", "latency_ms"),
    ),
)
"""Strategies for products by TMA and wgmma, by dtype."""

SPLIT_IN_REGISTERS_STRATEGY = Strategy(
    name=SPLIT_IN_REGISTERS,
    statement="Read the large operand once: let TMA bring its float32 numbers to shared memory, and split "
    "them into two fp16 parts in the registers from which wgmma takes its first factor, with a scale for "
    "each row and 64 of k. Only the small operand is split beforehand.",
    classes=(WorkloadClass.MATMUL, WorkloadClass.FUSED),
    dtypes=("float32",),
    architectures=("sm_90",),
    present=(Optimisation.TENSOR_CORES,),
    effects=lowers("gmem_load_sectors", "gmem_store_sectors", "latency_ms"),
)
"""Step after the three products for a large operand that meets few rows: it takes longest to split."""

ROW_STRATEGIES = (
    _strategy(
        ROWS,
        "Give each output to a whole CTA: neighbouring threads read neighbouring elements along k and add up "
        "through registers and shared memory.",
        "gmem_load_sectors",
    ),
    _strategy(
        ROW_VECTORS,
        "Load 128 bits a thread along k.",
        "gmem_requests warp_instructions",
        "rows of 16-byte multiples",
    ),
    _strategy(
        ROW_UNROLL,
        "Issue four vector loads of each operand before the first is used, so that more bytes are in flight.",
        "branches latency_ms",
    ),
)
"""Strategies for a matrix-vector product whose operands are contiguous along k, in order."""

FEW_ROWS_STRATEGY = _strategy(
    FEW_ROWS,
    "Each element of the large operand meets few rows, so the speed is that of reading it. Load it with "
    "128-bit loads straight into the registers that feed mma.sync, eight vectors a lane under way, without "
    "shared memory; the warps of a CTA divide k and add their sums at the end.",
    "gmem_load_sectors warp_instructions latency_ms",
    "few rows on one side, both operands contiguous along k",
    absent=(Optimisation.TENSOR_CORES,),
)
"""Strategy for a product of a large matrix and few rows, as when a language model decodes."""
