"""Writer of graphs that are one operator: a convolution, a pooling, a scan, an attention."""

from __future__ import annotations

from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.authors.offline.graph.ir import Extent, Shape
from cutegen_nb.authors.offline.graph.reading import identifier
from cutegen_nb.authors.offline.operators.operator import (
    OperandTensor,
    OperatorCall,
    OperatorMatch,
    OperatorText,
    OperatorWriter,
)
from cutegen_nb.authors.offline.operators.registry import OPERATOR_WRITERS
from cutegen_nb.authors.offline.templates import IMPORTS, joined, render
from cutegen_nb.authors.offline.writers import WrittenKernel
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph, Ref, TensorSpec
from cutegen_nb.core.library import Library
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy


class OperatorsWriter:
    """Writer of kernels for single operators."""

    def __init__(self, writers: tuple[OperatorWriter, ...] = OPERATOR_WRITERS) -> None:
        self._writers = writers

    def accepts(self, facts: ProblemFacts, library: Library = ()) -> bool:
        """Return whether one operator is the whole graph."""
        return not library and self._found(facts) is not None

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the protocol's
        """List the operator's strategies. Raises Declined."""
        writer, call, _ = self._known(facts)
        return writer.menu(call)

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> WrittenKernel:
        """Write the file with the strategies in `applied`. Raises Declined."""
        writer, call, match = self._known(facts)
        menu = {item.name: item for item in writer.menu(call)}
        text = writer.write(call, applied)
        steps = f": {', '.join(applied)}" if applied else ", in its simplest form"
        built = constructor(problem)
        source = render(
            "operators/module",
            title=f"{problem.name} in CuTe DSL{steps}.",
            imports=joined(sorted({*IMPORTS, *text.imports, *built.imports}, key=_modules_first)),
            constants=joined([f"{name} = {value}" for name, value in text.constants.items()]),
            kernels=text.source.strip("\n"),
            definitions=built.definitions,
            init=built.init,
            signature=", ".join(["self", *_arguments(facts.full.graph)]),
            forward=_forward(call, match, facts.full.graph, text),
        )
        last = menu.get(applied[-1]) if applied else None
        return WrittenKernel(
            source=source, rationale=last.statement if last else "The simplest kernel that is right."
        )

    def _known(self, facts: ProblemFacts) -> tuple[OperatorWriter, OperatorCall, OperatorMatch]:
        found = self._found(facts)
        if found is None:
            raise Declined("the offline author has no kernels for this kind of problem")
        return found

    def _found(self, facts: ProblemFacts) -> tuple[OperatorWriter, OperatorCall, OperatorMatch] | None:
        full, scaled = facts.full.graph, facts.scaled.graph
        for writer in self._writers:
            here, there = writer.matches(full), writer.matches(scaled)
            if len(here) == len(there) == 1 and _is_whole(full, here[0]):
                return writer, _call(full, scaled, here[0], there[0]), here[0]
        return None


def _modules_first(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _is_whole(graph: Graph, match: OperatorMatch) -> bool:
    return graph.outputs == (match.result,) and {node.name for node in graph.nodes} <= match.nodes


def _call(full: Graph, scaled: Graph, here: OperatorMatch, there: OperatorMatch) -> OperatorCall:
    names: list[str] = []
    for ref in here.operands:
        name = identifier(_source(full, ref).rpartition(".")[2])
        while name in names:
            name += "_"
        names.append(name)
    return OperatorCall(
        name="operator",
        operands=tuple(
            OperandTensor(
                name=name, shape=_shape(full.spec(one), scaled.spec(other)), dtype=full.spec(one).dtype
            )
            for name, one, other in zip(names, here.operands, there.operands, strict=True)
        ),
        attributes=here.attributes,
        scaled_attributes=there.attributes,
        shape=_shape(full.spec(here.result), scaled.spec(there.result)),
        dtype=full.spec(here.result).dtype,
    )


def _shape(full: TensorSpec, scaled: TensorSpec) -> Shape:
    return tuple(Extent(a, b) for a, b in zip(full.shape, scaled.shape, strict=True))


def _source(graph: Graph, ref: Ref) -> str:
    """Expression of an input or a parameter in ``forward``."""
    path = next((value.path for value in graph.parameters if value.name == ref.name), None)
    return identifier(ref.name) if path is None else f"self.{path}"


def _arguments(graph: Graph) -> list[str]:
    scalars = dict(graph.scalars)
    inputs = iter(graph.inputs)
    return [
        f"number{position}" if position in scalars else identifier(next(inputs).name)
        for position in range(len(graph.inputs) + len(scalars))
    ]


def _forward(call: OperatorCall, match: OperatorMatch, graph: Graph, text: OperatorText) -> str:  # noqa: ARG001 - for later
    values = [f"dense({_source(graph, ref)})" for ref in match.operands]
    return f"return {call.name}({', '.join(['self.launch', *values])})"
