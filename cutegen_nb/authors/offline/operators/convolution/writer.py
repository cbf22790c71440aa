"""Writer of convolutions, from one thread an output to implicit products on tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.operators.convolution.reading import (
    Convolution,
    attributes_of,
    convolutions,
    has_bias,
)
from cutegen_nb.authors.offline.operators.convolution.strategies import (
    MULTISTAGE,
    MULTISTAGE_STRATEGY,
    TENSOR,
    TENSOR_STRATEGIES,
)
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.templates import joined, render
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy


class ConvolutionWriter:
    """Writer of convolutions, dense and grouped, plain and transposed."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the convolutions of a graph, in order."""
        return convolutions(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies for the convolution's shape. Raises Declined."""
        if call.attributes != call.scaled_attributes:
            raise Declined("the convolution's stride, padding or dilation changes with the problem's size")
        return ()

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`."""
        return OperatorText(
            source=render("convolution/naive", **values_of(call)), constants=constants_of(call)
        )


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
