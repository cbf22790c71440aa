"""Writer of attention: the strategies that fit, and the text of a kernel from its template."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.attention.matching import AttentionAttributes, attentions_of
from cutegen_nb.authors.offline.operators.attention.strategies import (
    PIPELINE,
    PIPELINE_STRATEGY,
    TILE_STRATEGIES,
    TILES,
)
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
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
        """List the strategies. Raises Declined for work after the attention that it cannot take along."""
        if call.tail is not None:
            raise Declined("the offline author writes no element-wise work into an attention")
        if max(call.shape[-1].full, call.shape[-1].scaled) > _WIDEST:
            return ()
        return TILE_STRATEGIES.get(call.dtype, TILE_STRATEGIES["float16"]), PIPELINE_STRATEGY

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel of the furthest strategy in `applied`."""
        template = "tiles" if {TILES, PIPELINE} & set(applied) else "warp"
        source = render(f"attention/{template}", **_values(call, applied))
        return OperatorText(source=source, constants={}, imports=("import math",))


def _values(call: OperatorCall, applied: tuple[str, ...]) -> dict[str, object]:
    attributes = call.attributes
    assert isinstance(attributes, AttentionAttributes)
    operands = [item.name for item in call.operands]
    tensors = ["mQ", "mK", "mV", *(["mMask"] if attributes.masked else []), "mO"]
    kind = "Causal attention" if attributes.causal else "Attention"
    return {
        "name": call.name, "NAME": call.name.upper(), "q": operands[0], "k": operands[1], "v": operands[2],
        "mask": operands[3] if attributes.masked else "", "causal": attributes.causal,
        "safe": attributes.safe, "dtype": call.dtype,
        "params": ", ".join(f"{item}: cute.Tensor" for item in tensors), "arguments": ", ".join(tensors),
        "torch_params": ", ".join(f"{item}: torch.Tensor" for item in operands),
        "launched": ", ".join(tensors), "tf32": call.dtype == "float32", "pipelined": PIPELINE in applied,
        "scale": _scale(call),
        "summary": f"{kind}: softmax(Q · Kᵀ · scale) · V over the last two dimensions.",
    }  # fmt: skip


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
