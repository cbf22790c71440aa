"""Writer of convolutions, from one thread an output to implicit products on tensor cores."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.authors.offline.matmul.choices import BUT_HOPPER
from cutegen_nb.authors.offline.matmul.source import HOPPER_IMPORTS
from cutegen_nb.authors.offline.operators.convolution.packing import fits_shifted, folded_taps, sides_of
from cutegen_nb.authors.offline.operators.convolution.reading import (
    attributes_of,
    convolutions,
    has_bias,
)
from cutegen_nb.authors.offline.operators.convolution.strategies import (
    MULTISTAGE,
    MULTISTAGE_STRATEGY,
    SHIFTED,
    SHIFTED_STRATEGIES,
    TENSOR,
    TENSOR_STRATEGIES,
    TILES,
    TILES_STRATEGY,
)
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.templates import render
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy

SMALLEST_MMA = 8
"""Smallest extent of an MMA: those of 16 × 8 × 16 have n = 8."""
MUCH_WORK = 2**34
"""Multiplications and additions of the full size from which the simplest kernel is too slow to begin with."""
LARGEST_TENSOR = 2**31
"""Largest number of elements of a tensor for tensor cores: their kernel counts elements in 32 bits."""


class ConvolutionWriter:
    """Writer of convolutions, dense and grouped, plain and transposed."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the convolutions of a graph, in order."""
        return convolutions(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies for the convolution's shape. Raises Declined."""
        if call.attributes != call.scaled_attributes:
            raise Declined("the convolution's stride, padding or dilation changes with the problem's size")
        tiles = () if starts_tiled(call) else (TILES_STRATEGY,)
        if not suits_tensor_cores(call):
            return tiles
        dtype = call.operands[0].dtype
        gathered = TENSOR_STRATEGIES[dtype], MULTISTAGE_STRATEGY
        if not fits_shifted(call):
            return (*tiles, *gathered)
        # On Hopper mma.sync would stand in the way of wgmma, which is faster.
        return (
            *tiles,
            SHIFTED_STRATEGIES[dtype],
            *(replace(one, architectures=BUT_HOPPER) for one in gathered),
        )

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`."""
        if SHIFTED in applied:
            sides, reached = sides_of(call)
            values = {
                **values_of(call),
                **parts_of(call),
                "folded": folded_taps(call),
                "sides": sides,
                "reached": reached,
            }
            return OperatorText(
                source=render("convolution/shifted", **values),
                constants=constants_of(call),
                imports=("import math", *HOPPER_IMPORTS),
            )
        if TENSOR not in applied:
            level = "tiled" if TILES in applied or starts_tiled(call) else "naive"
            source = render(f"convolution/{level}", **values_of(call))
            return OperatorText(source=source, constants=constants_of(call))
        values = {**values_of(call), **parts_of(call), "pipelined": MULTISTAGE in applied}
        return OperatorText(
            source=render("convolution/tensor", **values),
            constants=constants_of(call),
            imports=("import math",),
        )


def starts_tiled(call: OperatorCall) -> bool:
    """Return whether the first kernel has tiles already: one thread an output took up to 1 s on an H100."""
    weight = call.operands[1].shape
    # Each input meets each tap of its filters once in a transposed convolution, each output in a plain one.
    meets = call.operands[0].shape if attributes_of(call).transposed else call.shape
    taps = elements(weight[1:]).full
    return elements(meets).full * taps >= MUCH_WORK


def suits_tensor_cores(call: OperatorCall) -> bool:
    """Return whether a group has work for an MMA at the full size, and 32 bits count all elements.

    With fewer than 8 output channels, or fewer than 16 products a sum, most of its factors would be zeros.
    """
    groups, weight = attributes_of(call).groups, call.operands[1].shape
    outputs = call.shape[1].full // groups
    depth = call.operands[0].shape[1].full // groups * elements(weight[2:]).full
    # One more chunk than the input's holds zeros.
    largest = max(elements(call.operands[0].shape).full, elements(call.shape).full, _packed(call) + 8)
    return outputs >= SMALLEST_MMA and depth >= 2 * SMALLEST_MMA and largest <= LARGEST_TENSOR


def _packed(call: OperatorCall) -> int:
    """Elements of one packed part of the input: the channels of a group fill whole chunks."""
    x, groups = call.operands[0].shape, attributes_of(call).groups
    inputs = x[1].full // groups
    chunk = 8 if inputs > 4 else 4  # noqa: PLR2004 - as the kernel has it
    return (elements(x).full // x[1].full) * (-(-inputs // chunk) * chunk * groups)


def constants_of(call: OperatorCall) -> dict[str, str]:
    """Numbers of the convolution as constants of the module."""
    numbers, name = attributes_of(call), call.name.upper()
    constants = {
        f"{name}_STRIDE": repr(numbers.stride),
        f"{name}_PADDING": repr(numbers.padding),
        f"{name}_DILATION": repr(numbers.dilation),
    }
    if numbers.transposed:
        constants[f"{name}_OUTPUT_PADDING"] = repr(numbers.output_padding)
    return constants


def values_of(call: OperatorCall) -> dict[str, object]:
    """Values that every template of a convolution needs."""
    extras = call.tail.extras if call.tail else ()
    names = [f"m_{extra.name}" for extra in extras]
    operands = [operand.name for operand in call.operands]
    bias = ["mBias"] if has_bias(call) else []
    return {
        "name": call.name,
        "NAME": call.name.upper(),
        "numbers": attributes_of(call),
        "rank": len(call.shape) - 2,
        "operands": operands,
        "extras": [extra.name for extra in extras],
        "more": [*bias, *names],
        "more_parameters": "".join(f", {item}: cute.Tensor" for item in (*bias, *names)),
        "more_arguments": "".join(f", {item}" for item in (*bias, *names)),
        "host_more": "".join(f", {item}" for item in (*operands[2:], *(x.name for x in extras))),
        "bias": bool(bias),
        "tail_loads": [f"{x.name}_value = m_{x.name}[place].to(cutlass.Float32)" for x in extras],
        "tail_lines": list(call.tail.lines) if call.tail else [],
        "tail_value": call.tail.value if call.tail else "acc",
        "dtype": call.dtype,
    }


def parts_of(call: OperatorCall) -> dict[str, object]:
    """Template values for the packed operands: float32 is split into an upper and a lower part."""
    split = call.operands[0].dtype == "float32"
    parts = ("Upper", "Lower") if split else ("Whole",)
    x_parts, w_parts = [f"m{part}X" for part in parts], [f"m{part}W" for part in parts]
    return {
        "split": split,
        "parts": list(parts),
        "x_parts": x_parts,
        "w_parts": w_parts,
        "backs": ["mBackX", "mBackW"] if split else [],
    }
