"""Writer of matrix products with a fused epilogue, from a naive kernel to pipelined tensor cores and split-K.

All sums are in fp32 and rounded once, when the output is stored. On tensor cores fp16 and bf16 are multiplied
as they are, and a product of fp32 is three products in TF32, by Hopper's wgmma three in fp16. On CUDA cores
fp32 takes one FFMA for each multiply-add, and fp16 and bf16 are widened as they are staged.
"""

from __future__ import annotations

from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.authors.offline.matmul.choices import strategies_for, variant_for
from cutegen_nb.authors.offline.matmul.graph import has_product
from cutegen_nb.authors.offline.matmul.source import MatmulVariant, product_of, source_of
from cutegen_nb.authors.offline.matmul.strategies import BLOCK_STRATEGIES, HOPPER_STRATEGIES, ROW_STRATEGIES
from cutegen_nb.authors.offline.writers import WrittenKernel
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.library import Library, LibraryFamily
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy


class MatmulWriter:
    """Writer of graphs that are one matrix product and its epilogue."""

    def accepts(self, facts: ProblemFacts, library: Library = ()) -> bool:
        """Return whether the graph is one product and its epilogue, and the policy leaves it to a kernel."""
        if LibraryFamily.MATMUL in library or not has_product(facts.full.graph):
            return False
        try:
            product_of(facts)
        except Declined:
            return False
        return True

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the protocol's
        """List the strategies for the product's shape. Raises Declined, naming what is not supported."""
        return strategies_for(product_of(facts))

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> WrittenKernel:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        product = product_of(facts)
        menu = strategies_for(product)
        variant = variant_for(product, applied)
        built = constructor(problem)
        source = source_of(facts, variant, built=built, title=_title(variant))
        known = {item.name: item for item in (*BLOCK_STRATEGIES, *ROW_STRATEGIES, *HOPPER_STRATEGIES, *menu)}
        last = known.get(applied[-1]) if applied else None
        return WrittenKernel(
            source=source, rationale=last.statement if last else f"{_WORDS[variant.level].capitalize()}."
        )


_WORDS = {
    "naive": "one output element a thread",
    "tiled": "tiles staged in shared memory",
    "blocked": "a block of outputs in each thread's registers, on CUDA cores",
    "tensor": "a block of outputs in each warp's registers, on tensor cores",
    "wgmma": "tiles by TMA, multiplied by wgmma",
    "three_products": "three fp16 products for one of fp32, tiles by TMA, multiplied by wgmma",
    "split_in_registers": "three fp16 products for one of fp32, the large operand split on its way to wgmma",
    "few_rows": "a large operand read into the registers of tensor cores, where it meets few rows",
    "rows": "a CTA for each output of a matrix-vector product",
}


def _title(variant: MatmulVariant) -> str:
    """First line of the file."""
    tensor = variant.level == "tensor"
    words = [_WORDS[variant.level]]
    words += ["128-bit copies"] if variant.vectors and not tensor else []
    words += ["three stages" if tensor else "double buffering"] if variant.pipelined else []
    words += ["split k"] if variant.split else []
    return f"A matrix product: {', '.join(words)}."
