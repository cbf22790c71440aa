"""Attention as two matrix products with a softmax between them: sizes that fit, text of the products."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType
from cutegen_nb.authors.offline.graph.ir import Extent, elements
from cutegen_nb.authors.offline.matmul.choices import LARGEST_TENSOR, fits_wgmma, wants_split
from cutegen_nb.authors.offline.matmul.graph import MatrixProduct
from cutegen_nb.authors.offline.matmul.sizes import Factor, Sizes, SymbolicSize
from cutegen_nb.authors.offline.matmul.source import MatmulVariant, ProductFunction, function_of
from cutegen_nb.authors.offline.operators.operator import OperatorCall

_RESULT = Leaf("acc", ValueType.F32)
"""Output element of a product without an epilogue."""
_LONGEST_ROW = 8192
"""Largest number of keys: 64 scores in the registers of each of 128 threads."""


def suits_products(call: OperatorCall) -> bool:
    """Return whether both products fit wgmma and a row of scores fits in a CTA's registers."""
    scores, values = _products(call)
    size = max(elements((item.m, item.n, item.batch)).full for item in (scores, values))
    fit = all(fits_wgmma(item) and not wants_split(item) for item in (scores, values))
    return fit and scores.n.full <= _LONGEST_ROW and size <= LARGEST_TENSOR


def products_text(call: OperatorCall) -> tuple[str, str]:
    """Write the functions ``NAME_scores(launch, q, k)`` and ``NAME_values(launch, weights, v)``.

    Their tensors have one batch dimension and are row-major.
    """
    scores, values = _products(call)
    variant = MatmulVariant(level="three_products")
    q, k, v = (item.name for item in call.operands[:3])
    return (
        function_of(scores, variant, _function(f"{call.name}_scores", (q, k))),
        function_of(values, variant, _function(f"{call.name}_values", ("weights", v))),
    )


def _function(name: str, parameters: tuple[str, ...]) -> ProductFunction:
    return ProductFunction(name=name, parameters=parameters, lines=(), value="acc")


def _products(call: OperatorCall) -> tuple[MatrixProduct, MatrixProduct]:
    """Products for the scores (batch, L, S) and for the outputs (batch, L, E)."""
    q, k, v = call.operands[:3]
    batch, (rows, depth), (keys, columns) = elements(q.shape[:-2]), q.shape[-2:], v.shape[-2:]
    scores = MatrixProduct(
        a=f"{q.name}.permute(1, 2, 0)", b=f"{k.name}.permute(1, 2, 0)", d="D.permute(1, 2, 0)", like=q.name,
        output_sizes=_sizes(
            (f"{q.name}.shape[0]", batch), (f"{q.name}.shape[1]", rows), (f"{k.name}.shape[1]", keys)
        ),
        output_dtype="float32", operand_dtype="float32", extras=(), result=_RESULT, triangle=None,
        m=rows, n=keys, k=depth, batch=batch, k_contiguous=(True, True),
    )  # fmt: skip
    values = replace(
        scores,
        a="weights.permute(1, 2, 0)", b=f"{v.name}.permute(2, 1, 0)", like=v.name,
        output_sizes=_sizes(
            ("weights.shape[0]", batch), ("weights.shape[1]", rows), (f"{v.name}.shape[2]", columns)
        ),
        n=columns, k=keys, k_contiguous=(True, False),
    )  # fmt: skip
    return scores, values


def _sizes(*named: tuple[str, Extent]) -> Sizes:
    """Dimensions of an output, each with its expression on the host."""
    return tuple(SymbolicSize((Factor(text, extent),)) for text, extent in named)
