"""Cut of a problem into the parts that operators' kernels compute and a program of loops around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cutegen_nb.analysis.problem.workload import node_flops
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.graph.ir import GraphProgram, Op, elements
from cutegen_nb.authors.offline.graph.library_calls import is_left
from cutegen_nb.authors.offline.graph.reading import FunctionCall, check_alike, identifier, read
from cutegen_nb.authors.offline.matmul.graph import PRODUCTS
from cutegen_nb.authors.offline.operators.extents import Templates, extents_of
from cutegen_nb.authors.offline.operators.operator import (
    OperandTensor,
    OperatorCall,
    OperatorMatch,
    OperatorTail,
    OperatorWriter,
)
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.library import Library
from cutegen_nb.core.problem import ProblemFacts

_FUNCTIONS = {
    "convolution": "conv",
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "mv", "addmv"), "product"),
}
"""Name of the generated function by the short name of the node whose value it makes; others keep theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPart:
    """Part of a problem that one operator's kernel computes."""

    name: str
    """Name of the generated function."""
    writer: OperatorWriter
    """Writer of the kernel."""
    match: OperatorMatch
    """Nodes, operands and attributes at the full size."""
    scaled: OperatorMatch
    """The same at the scaled size."""
    extents: Templates | None
    """Expressions for the extents of the result; None where the host cannot tell them beforehand."""
    flops: int
    """FLOPs of the nodes at the full size, of all parts that share the function."""

    @property
    def in_place(self) -> bool:
        """True if the function takes operands of any strides, as it should at the full size."""
        return self.match.in_place


@dataclass(frozen=True, slots=True, kw_only=True)
class CutProblem:
    """Problem as a program whose calls are the operators' parts."""

    program: GraphProgram
    """Loops, with a call for each part and for each node that is left to PyTorch."""
    parts: Mapping[str, OperatorPart]
    """Parts by the name of their function."""
    tails: Mapping[str, OperatorTail]
    """Element-wise work fused into a part's kernel, by the name of its function."""

    def calls(self) -> dict[str, OperatorCall]:
        """Requests for the kernels of the parts, the costliest first, by the name of the function."""
        ops = [op for op in self.program.ops.values() if op.call and op.call.function]
        ops.sort(key=self._cost, reverse=True)
        found: dict[str, OperatorCall] = {}
        for op in ops:
            call = self.call(op)
            found.setdefault(call.name, call)
        return found

    def call(self, op: Op) -> OperatorCall:
        """Request for the kernel of one call of the program."""
        part = self.part_of(op)
        tail = self.tails.get(part.name)
        # The tail's tensors come after the part's own.
        own = op.operands[: len(part.match.operands)]
        return OperatorCall(
            name=part.name,
            operands=tuple(
                OperandTensor(name=name, shape=self.program.shape(value), dtype=self.program.dtype(value))
                for name, value in zip(parameter_names(own, part.name), own, strict=True)
            ),
            attributes=part.match.attributes,
            scaled_attributes=part.scaled.attributes,
            shape=op.shape,
            dtype=op.dtype,
            in_place=part.in_place,
            tail=tail,
        )

    def part_of(self, op: Op) -> OperatorPart:
        """Part that a call of the program computes."""
        assert op.call is not None
        return self.parts[op.call.function]

    def fresh(self, name: str) -> str:
        """Return `name`, with underscores appended until no value and no function has it."""
        while name in self.program.buffers or name in self.program.ops or name in self.parts:
            name += "_"
        return name

    def _cost(self, op: Op) -> tuple[int, int]:
        """FLOPs of an operator, then the elements that it stores: a gather has no FLOPs.

        Steps that wait for one another leave most of a GPU idle, so they count as many times.
        """
        part = self.part_of(op)
        return part.flops * part.match.steps, elements(op.shape).full


_MOST_PRODUCTS = 400
"""Largest number of products: those of the deepest networks of layers are some 200."""
_TAKEN = frozenset({"acc", "axes", "extents", "launch", "out", "outputs", "place", "shape", "tensors"})
"""Names that generated functions have for their own."""


def parameter_names(values: tuple[str, ...], function: str) -> list[str]:
    """Parameter names for values: their own, unless one is taken twice or by the function."""
    names: list[str] = []
    for value in values:
        name = value
        while name in names or name in _TAKEN or name == function:
            name += "_"
        names.append(name)
    return names


def cut(facts: ProblemFacts, writers: tuple[OperatorWriter, ...], library: Library) -> CutProblem:
    """Cut a problem. Raises Declined, naming the operation that neither loops nor an operator compute."""
    check_alike(facts)
    _check_few(facts.full.graph)
    parts = _parts(facts.full.graph, facts.scaled.graph, writers, library)
    functions = {
        part.match.result.name: FunctionCall(
            name=part.name,
            operands=part.match.operands,
            outputs=(part.match.result.index, *(ref.index for ref in part.match.more)),
            in_place=part.in_place,
        )
        for part in parts
    }
    program = read(facts, library, functions)
    flops = Counter[str]()
    for part in parts:
        flops[part.name] += part.flops
    by_name = {part.name: replace(part, flops=flops[part.name]) for part in parts}
    return CutProblem(program=program, parts=by_name, tails={})


def _parts(
    full: Graph, scaled: Graph, writers: tuple[OperatorWriter, ...], library: Library
) -> list[OperatorPart]:
    """Find the parts, each node in one at most; the writers are asked in order.

    A match counts if both sizes have it: a view of a product's operand may be one without a copy at one only.
    """
    taken = {node.name for node in full.nodes if is_left(node, library)}
    parts: list[OperatorPart] = []
    for writer in writers:
        there = {(match.result, match.operands): match for match in reversed(writer.matches(scaled))}
        for match in writer.matches(full):
            small = there.get((match.result, match.operands))
            if small is not None and not taken & match.nodes:
                taken |= match.nodes
                name = _shared_name(match, small, parts)
                name = name or _function_name(full, match, list(dict.fromkeys(part.name for part in parts)))
                extents = extents_of(full, match, small)
                own = (node_flops(full, node) for node in full.nodes if node.name in match.nodes)
                flops = sum(own) if match.flops is None else match.flops
                parts.append(
                    OperatorPart(
                        name=name, writer=writer, match=match, scaled=small, extents=extents, flops=flops
                    )
                )
    return parts


def _check_few(graph: Graph) -> None:
    """Raise Declined for more products than networks have layers: each would get kernels of its own."""
    products = sum(short_name(node.op) in PRODUCTS for node in graph.nodes)
    if products > _MOST_PRODUCTS:
        raise Declined(
            f"the reference computes {products} matrix products, and the offline author writes at most "
            f"{_MOST_PRODUCTS}; a loop over steps can be written as a layer of torch.nn (LSTM, GRU, RNN)"
        )


def _shared_name(match: OperatorMatch, small: OperatorMatch, parts: list[OperatorPart]) -> str:
    """Name of the function that an equal match has already; empty for none."""
    alike = (
        part.name
        for part in parts
        if part.match.shared
        and (part.match.attributes, part.scaled.attributes) == (match.attributes, small.attributes)
    )
    return next(alike, "") if match.shared else ""


def _function_name(graph: Graph, match: OperatorMatch, others: list[str]) -> str:
    node = graph.node(match.result.name)
    if node is None:
        raise Declined(f"an operator's kernel would compute {match.result.name}, which is given")
    short = short_name(node.op)
    name = match.name or identifier(_FUNCTIONS.get(short, short.removesuffix("_with_indices").strip("_")))
    number = sum(other == name or other.startswith(f"{name}_") for other in others)
    return f"{name}_{number + 1}" if number else name
