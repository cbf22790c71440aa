"""Writer of attention: the strategies that fit, and the text of a kernel from its template."""

from __future__ import annotations

import math
from dataclasses import replace

from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.authors.offline.matmul.choices import BUT_HOPPER, LARGEST_TENSOR
from cutegen_nb.authors.offline.matmul.source import HOPPER_IMPORTS
from cutegen_nb.authors.offline.operators.attention.matching import AttentionAttributes, attentions_of
from cutegen_nb.authors.offline.operators.attention.products import products_text, suits_products
from cutegen_nb.authors.offline.operators.attention.strategies import (
    PARTS,
    PARTS_STRATEGY,
    PIPELINE,
    PIPELINE_STRATEGY,
    PRODUCTS,
    PRODUCTS_STRATEGY,
    TILE_STRATEGIES,
    TILES,
    WGMMA,
    WGMMA_STRATEGY,
)
from cutegen_nb.authors.offline.operators.attention.strides import TMA_ELEMENTS, WIDEST_PARTS, WIDEST_WGMMA
from cutegen_nb.authors.offline.operators.operator import (
    OperatorCall,
    OperatorMatch,
    OperatorText,
)
from cutegen_nb.authors.offline.templates import render
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy

_WIDEST = 1024
"""Columns of V whose sums fit in the registers of a CTA."""


class AttentionWriter:
    """Writer of scaled dot-product attention."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the attentions of a graph, in order."""
        return attentions_of(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies."""
        hopper = _hopper_strategy(call)
        if max(call.shape[-1].full, call.shape[-1].scaled) > _WIDEST:
            return () if hopper is None else (hopper,)
        others = (TILE_STRATEGIES.get(call.dtype, TILE_STRATEGIES["float16"]), PIPELINE_STRATEGY)
        if hopper is None:
            return others
        # On Hopper mma.sync would stand in the way of wgmma, which is faster.
        return hopper, *(replace(one, architectures=BUT_HOPPER) for one in others)

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel of the furthest strategy in `applied`. Raises Declined for a tail."""
        if call.tail is not None:
            raise Declined("the offline author writes no element-wise work into an attention")
        values = _values(call, applied)
        if PRODUCTS in applied:
            scores, outputs = products_text(call)
            source = render("attention/products", scores=scores, values=outputs, **values)
            return OperatorText(source=source, constants={}, imports=HOPPER_IMPORTS)
        if {WGMMA, PARTS} & set(applied):
            source = render("attention/wgmma", parts=PARTS in applied, **values)
            return OperatorText(source=source, constants={}, imports=HOPPER_IMPORTS)
        template = "tiles" if {TILES, PIPELINE} & set(applied) else "warp"
        source = render(f"attention/{template}", **values)
        return OperatorText(source=source, constants={}, imports=("import math",))


def _hopper_strategy(call: OperatorCall) -> Strategy | None:
    """Return the strategy for wgmma that fits the sizes and the dtype."""
    attributes = call.attributes
    assert isinstance(attributes, AttentionAttributes)
    widths = [value for item in call.operands[:3] for value in (item.shape[-1].full, item.shape[-1].scaled)]
    # Offsets are computed in 32 bits, and a tensor in two parts has twice the elements.
    shapes = [call.shape, *(item.shape for item in call.operands[:3])]
    parts = 2 if call.dtype == "float32" else 1
    counted = all(parts * elements(shape).full <= LARGEST_TENSOR for shape in shapes)
    aligned = not any(width % TMA_ELEMENTS for width in widths) and attributes.scale > 0
    if call.dtype != "float32":
        return WGMMA_STRATEGY if aligned and counted and max(widths) <= WIDEST_WGMMA else None
    if max(widths) <= WIDEST_PARTS:
        return PARTS_STRATEGY if aligned and counted else None
    return PRODUCTS_STRATEGY if suits_products(call) else None


def _values(call: OperatorCall, applied: tuple[str, ...]) -> dict[str, object]:
    attributes = call.attributes
    assert isinstance(attributes, AttentionAttributes)
    operands = [item.name for item in call.operands]
    tensors = ["mQ", "mK", "mV", *(["mMask"] if attributes.masked else []), "mO"]
    kind = "Causal attention" if attributes.causal else "Attention"
    order = attributes.order
    return {
        "name": call.name, "NAME": call.name.upper(), "q": operands[0], "k": operands[1], "v": operands[2],
        "mask": operands[3] if attributes.masked else "", "fill": _fill(attributes),
        "causal": attributes.causal, "safe": attributes.safe, "dtype": call.dtype,
        "params": ", ".join(f"{item}: cute.Tensor" for item in tensors), "arguments": ", ".join(tensors),
        "torch_params": ", ".join(f"{item}: torch.Tensor" for item in operands),
        "launched": ", ".join(tensors), "tf32": call.dtype == "float32", "pipelined": PIPELINE in applied,
        "scale": _scale(call), "in_place": call.in_place, "order": order,
        "back": tuple(order.index(dim) for dim in range(len(order))),
        # Several dimensions are one mode of the kernels' tensors, the batch.
        "grouped": call.in_place or bool(order),
        "summary": f"{kind}: softmax(Q · Kᵀ · scale) · V over the last two dimensions.",
    }  # fmt: skip


def _fill(attributes: AttentionAttributes) -> str:
    """Number for a score, with the condition on the mask's element ``{}``; empty for a mask to add."""
    if attributes.fill is None:
        return ""
    infinite = attributes.fill == -math.inf
    number = "-cutlass.Float32.inf" if infinite else f"cutlass.Float32({attributes.fill!r})"
    return f"{number} if {{}} {'!=' if attributes.hidden else '=='} cutlass.Uint8(0) else"


def _scale(call: OperatorCall) -> str:
    """Expression of the scores' factor; where it differs between the sizes it is 1 / sqrt(D)."""
    here, there = call.attributes, call.scaled_attributes
    assert isinstance(here, AttentionAttributes)
    assert isinstance(there, AttentionAttributes)
    if here.scale == there.scale:
        return repr(here.scale)
    depths = call.operands[0].shape[-1]
    if all(
        abs(value.scale * depth**0.5 - 1) < 1e-6  # noqa: PLR2004 - rounding of the quotient
        for value, depth in ((here, depths.full), (there, depths.scaled))
    ):
        return "D**-0.5"
    raise Declined("the factor of the attention's scores depends on the problem's size")
