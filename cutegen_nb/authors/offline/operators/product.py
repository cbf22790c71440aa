"""Matrix products as operators: a product in a graph with other work around it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import replace

from cutegen_nb.authors.offline.expressions.expressions import body
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.graph.ir import Shape
from cutegen_nb.authors.offline.matmul.choices import STEPS, strategies_for, variant_for
from cutegen_nb.authors.offline.matmul.epilogue import Extra
from cutegen_nb.authors.offline.matmul.graph import PRODUCTS, MatrixProduct, read_product
from cutegen_nb.authors.offline.matmul.source import ProductFunction, function_of, more_imports
from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.recurrence.layers import taken_by_steps
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.strategy import Strategy

_VIEWS = frozenset({"view", "_unsafe_view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "t",
                    "transpose", "expand", "clone", "contiguous"})  # fmt: skip
"""ATen operations that a product's operand may go through without a copy in memory."""
_TAKEN = frozenset({"D", "mA", "mB", "mD", "mW", "chosen", "tensors", "elements", "launch"})
"""Names that the generated function has for its own."""


class ProductOperator:
    """Writer of matrix products; the transposes and reshapes of an operand become views."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the matrix products of a graph, each with its operands' views where they copy nothing."""
        products = (node for node in graph.nodes if short_name(node.op) in PRODUCTS)
        of_layers = taken_by_steps(graph)
        return tuple(
            match for node in products for match in _matches(graph, node, shared=node.name in of_layers)
        )

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies for the product's shape. Raises Declined."""
        return strategies_for(_product(call))

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the product's kernels and their function; strategies of other operators are passed over."""
        product = _product(call)
        variant = variant_for(product, tuple(name for name in applied if name in STEPS))
        lines, values = body({"result": product.result})
        tail = call.tail
        function = ProductFunction(
            name=call.name,
            parameters=tuple(_own(item.name) for item in (*call.operands, *(tail.extras if tail else ()))),
            lines=tuple(lines) if tail is None else tail.lines,
            value=values["result"] if tail is None else tail.value,
        )
        return OperatorText(
            source=function_of(product, variant, function), constants={}, imports=more_imports(variant)
        )


def _matches(graph: Graph, node: Node, *, shared: bool) -> Iterator[OperatorMatch]:
    """Matches with the tensors that the operands are views of: those of all, of each alone, then of none.

    Views that copy, as the reshaping of permuted heads, are no views of a product: such an operand is taken
    as it is.
    """
    operands = tuple(dict.fromkeys(arg for arg in node.args if isinstance(arg, Ref)))
    chains = {ref: _views(graph, ref) for ref in operands}
    alone = [(ref,) for ref in operands if len(operands) > 1]
    for viewed in (operands, *alone):
        views = {view.name for ref in viewed for view in chains[ref][0]}
        roots = tuple(dict.fromkeys(chains[ref][1] if ref in viewed else ref for ref in operands))
        order = [other for other in graph.nodes if other.name in views]
        piece = _piece(graph, roots, (*order, node))
        with contextlib.suppress(Declined):
            read_product(piece, piece, _texts(piece, [value.name for value in piece.inputs]))
            yield _match(node, roots, piece, shared=shared)
    yield _match(node, operands, _piece(graph, operands, (node,)), shared=shared)


def _match(node: Node, operands: tuple[Ref, ...], piece: Graph, *, shared: bool) -> OperatorMatch:
    return OperatorMatch(
        nodes=frozenset({node.name}),
        result=Ref(node.name),
        operands=operands,
        attributes=_renamed(piece) if shared else piece,
        shared=shared,
    )


def _renamed(piece: Graph) -> Graph:
    """Graph of a product with names that are the same for all products of this shape."""
    names = {value.name: f"operand{at}" for at, value in enumerate(piece.inputs)}
    names |= {node.name: f"step{at}" for at, node in enumerate(piece.nodes)}
    nodes = tuple(
        replace(
            node,
            name=names[node.name],
            args=tuple(Ref(names[arg.name]) if isinstance(arg, Ref) else arg for arg in node.args),
        )
        for node in piece.nodes
    )
    inputs = tuple(replace(value, name=names[value.name]) for value in piece.inputs)
    return replace(piece, inputs=inputs, nodes=nodes, outputs=(Ref(nodes[-1].name),))


def _views(graph: Graph, ref: Ref) -> tuple[list[Node], Ref]:
    """Views between an operand of the product and a tensor in memory, and that tensor."""
    found: list[Node] = []
    while (node := graph.node(ref.name)) is not None and short_name(node.op) in _VIEWS:
        source = node.args[0]
        # A broadcast operand has to be in memory as a whole.
        if not isinstance(source, Ref) or graph.spec(source).elements != node.outputs[0].elements:
            break
        found.append(node)
        ref = source
    return found, ref


def _piece(graph: Graph, roots: tuple[Ref, ...], nodes: tuple[Node, ...]) -> Graph:
    """Graph of a product alone, whose inputs are dense tensors."""
    inputs = tuple(Value(name=ref.name, spec=_dense(graph.spec(ref))) for ref in roots)
    return Graph(inputs=inputs, parameters=(), nodes=nodes, outputs=(Ref(nodes[-1].name),))


def _dense(spec: TensorSpec) -> TensorSpec:
    strides = tuple(math.prod(spec.shape[at + 1 :]) for at in range(len(spec.shape)))
    return replace(spec, strides=strides)


def _product(call: OperatorCall) -> MatrixProduct:
    """Read a call as a product, with the tensors of its tail. Raises Declined."""
    full, scaled = call.attributes, call.scaled_attributes
    assert isinstance(full, Graph)
    assert isinstance(scaled, Graph)
    product = read_product(full, scaled, _texts(full, [_own(item.name) for item in call.operands]))
    if call.tail is None:
        return product
    if ".view(" in product.d:
        for item in call.tail.extras:
            _check_mergeable(item.shape, call.shape)
    extras = tuple(
        Extra(
            name="m" + "".join(part[:1].upper() + part[1:] for part in _own(item.name).split("_")) + "In",
            text=re.sub(r"^D\b", _own(item.name), product.d),
            register=f"{item.name}_value",
        )
        for item in call.tail.extras
    )
    return replace(product, extras=extras, output_dtype=call.dtype)


def _texts(graph: Graph, names: list[str]) -> dict[str, str]:
    return {value.name: name for value, name in zip(graph.inputs, names, strict=True)}


def _own(name: str) -> str:
    return f"{name}_" if name in _TAKEN else name


def _check_mergeable(given: Shape, output: Shape) -> None:
    """Raise Declined where a tensor is broadcast along some of the dimensions that make the rows."""
    spread = {small.is_one for small, large in zip(given[:-1], output[:-1], strict=True) if not large.is_one}
    if len(spread) > 1:
        raise Declined(
            "the offline author broadcasts a tensor over all rows of a matrix product or over none, and "
            "here it is broadcast over some of them"
        )
