"""Search for attention in a traced graph: softmax(Q · Kᵀ · scale + mask) · V as the trace spells it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cutegen_nb.analysis.problem.causal import causal_mask
from cutegen_nb.analysis.problem.workload import operands
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.attention.strides import (
    in_place,
    kept_columns,
    strides_fit,
    suits_wgmma,
)
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.core.graph import Argument, Graph, Node, Ref

_VIEWS = frozenset({"view", "_unsafe_view", "reshape", "clone", "expand", "_to_copy"})
"""Operations that change no number, but for conversions, which the kernel does in float32."""
_FLOATS = frozenset({"float32", "float16", "bfloat16"})
_NO_KEY = -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionAttributes:
    """Kind of attention."""

    scale: float
    """Factor of the scores."""
    causal: bool = False
    """True if a query has no weight for later keys."""
    masked: bool = False
    """True if the fourth operand is a mask, which is added to the scores unless `fill` is a number."""
    fill: float | None = None
    """Number in the place of the scores where the elements of a mask of bools are `hidden`."""
    hidden: bool = True
    """Element of such a mask that takes a score away."""
    safe: bool = False
    """True if a query without keys has the output 0; else it has NaN."""
    order: tuple[int, ...] = ()
    """Dimensions of softmax(…) · V in the order in which the output has them; empty for their own."""


@dataclass(slots=True)
class _Walk:
    """Walk from the output of an attention back to its operands; collects the nodes on the way."""

    graph: Graph
    nodes: set[str] = field(default_factory=set)

    def through(self, value: Argument, *ops: str) -> Node | None:
        """Return the node that makes `value`, past views, if it is of one of these kinds."""
        made, passed = self.past_views(value)
        node = self.graph.node(made.name) if isinstance(made, Ref) else None
        if node is None or short_name(node.op) not in ops:
            return None
        self.nodes |= {node.name, *passed}
        return node

    def shapes_of(self, value: Argument) -> Iterator[tuple[Ref, set[str]]]:
        """Yield the tensors that `value` is a view of, the furthest first, with the views behind each."""
        made, passed = self.past_views(value)
        if isinstance(made, Ref):
            yield made, passed
        for node in self.graph.nodes:
            if node.name in passed:
                passed = passed - {node.name}
                yield Ref(node.name), passed

    def operand(self, value: Argument, batches: tuple[int, ...]) -> Ref | None:
        """Return the tensor behind the views of `value`, which are taken along.

        It is the furthest one with the dimensions `batches` before the last two: heads of keys that serve
        several queries are repeated before the attention.
        """
        made, passed = self.past_views(value)
        if isinstance(made, Ref) and self.graph.spec(made).shape[:-2] != batches:
            return self._with_batches(value, batches)
        self.nodes |= passed
        return made if isinstance(made, Ref) else None

    def _with_batches(self, value: Argument, batches: tuple[int, ...]) -> Ref | None:
        found, passed = None, set[str]()
        while isinstance(value, Ref):
            if self.graph.spec(value).shape[:-2] == batches:
                found = value
                self.nodes |= passed
            node = self.graph.node(value.name)
            if node is None or short_name(node.op) not in _VIEWS:
                break
            passed = {*passed, node.name}
            value = node.args[0]
        return found

    def past_views(self, value: Argument) -> tuple[Argument, set[str]]:
        """Return the value behind views that only put batches together, and the names of the views."""
        passed: set[str] = set()
        while isinstance(value, Ref):
            node = self.graph.node(value.name)
            if node is None or short_name(node.op) not in _VIEWS or not isinstance(node.args[0], Ref):
                break
            before, after = self.graph.spec(node.args[0]), node.outputs[0]
            if before.shape[-2:] != after.shape[-2:] or before.elements != after.elements:
                break
            passed.add(node.name)
            value = node.args[0]
        return value, passed


def attentions_of(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find every attention of a graph."""
    products = [node for node in graph.nodes if short_name(node.op) == "bmm"]
    return tuple(match for node in products for match in _matches(graph, node))


def _matches(graph: Graph, product: Node) -> tuple[OperatorMatch, ...]:
    """Attentions that end in `product`: first with a permutation behind it, then without."""
    found = tuple(_attentions(graph, product))
    permuted = (_permuted(graph, match) for match in found)
    return (*(match for match in permuted if match is not None), *found)


def _attentions(graph: Graph, product: Node) -> Iterator[OperatorMatch]:
    """Yield the attention with the queries in each shape that they are viewed in, the furthest first."""
    walk = _Walk(graph)
    walk.nodes.add(product.name)
    softmax = _softmax_of(walk, product.args[0])
    if softmax is None:
        return
    safe, softened = softmax
    scores, passed = walk.past_views(softened)  # a softmax of half precision converts its operand
    walk.nodes |= passed
    causal, scores = _causal(walk, scores)
    filled, mask, scores = _filled(walk, scores)
    if mask is None:
        mask, scores = _mask(walk, scores)
    scale, scores = _scale(walk, scores)
    first = walk.through(scores, "bmm")
    if first is None:
        return
    (of_q, query), (of_k, key) = (_scale(walk, value) for value in first.args[:2])
    attributes = replace(filled, scale=scale * of_q * of_k, causal=causal, masked=mask is not None, safe=safe)
    for q, passed in walk.shapes_of(query):
        one = _Walk(graph, walk.nodes | passed)
        match = _with_operands(one, product, (q, key, mask), attributes)
        if match is not None:
            yield match


def _with_operands(
    walk: _Walk,
    product: Node,
    operands: tuple[Ref, Argument, Ref | None],
    attributes: AttentionAttributes,
) -> OperatorMatch | None:
    """Return the attention of these queries, with the keys and values in their shape."""
    graph = walk.graph
    q, key, mask = operands
    batches = graph.spec(q).shape[:-2]
    k, v = _keys(walk, key, batches), walk.operand(product.args[1], batches)
    if k is None or v is None or not _fit(graph, (q, k, v)):
        return None
    # Without wgmma, which two products and a softmax use, attention may be the slower choice on Hopper.
    if attributes.fill is not None and not suits_wgmma(graph, (q, k, v)):
        return None
    if mask is not None and not _expands(
        graph.spec(mask).shape, (*graph.spec(q).shape[:-1], graph.spec(k).shape[-2])
    ):
        return None
    result = _result(graph, product, graph.spec(q).shape[:-1], graph.spec(q).dtype, walk.nodes)
    if result is None or not _closed(graph, walk.nodes, result):
        return None
    return OperatorMatch(
        nodes=frozenset(walk.nodes),
        result=result,
        operands=(q, k, v) if mask is None else (q, k, v, mask),
        attributes=attributes,
        name="attention",
        in_place=in_place(graph, (q, k, v)),
    )


def _permuted(graph: Graph, match: OperatorMatch) -> OperatorMatch | None:
    """Return the match with the permutation of its result, as of heads and rows, where it can store so."""
    users = [node for node in graph.nodes if match.result in operands(node)]
    order = kept_columns(users[0]) if len(users) == 1 and match.result not in graph.outputs else None
    if order is None or not strides_fit(graph, match.operands[:3]):
        return None
    assert isinstance(match.attributes, AttentionAttributes)
    return replace(
        match,
        nodes=match.nodes | {users[0].name},
        result=Ref(users[0].name),
        attributes=replace(match.attributes, order=order),
    )


def _softmax_of(walk: _Walk, value: Argument) -> tuple[bool, Argument] | None:
    """Return x of exp(x - amax(x)) / sum(exp(x - amax(x))), and True if 0 takes the place of 0 / 0."""
    choice = walk.through(value, "where")
    if choice is None:
        scores = _quotient(walk, value)
        return None if scores is None else (False, scores)
    scores = _quotient(walk, choice.args[2]) if choice.args[1] == 0 else None
    # not any(not (x == -inf)): no key of the row has a weight.
    empty, bound = choice.args[0], None
    for op in ("logical_not", "any", "logical_not", "eq"):
        node = walk.through(empty, op)
        if node is None:
            return None
        empty = node.args[0]
        bound = node.args[1] if op == "eq" else None
    return (True, scores) if scores is not None and (empty, bound) == (scores, _NO_KEY) else None


def _quotient(walk: _Walk, value: Argument) -> Argument:
    """Return x of exp(x - amax(x)) / sum(exp(x - amax(x)))."""
    quotient = walk.through(value, "div")
    if quotient is None:
        return None
    weights, total = walk.through(quotient.args[0], "exp"), walk.through(quotient.args[1], "sum")
    difference = walk.through(weights.args[0], "sub") if weights else None
    if weights is None or total is None or difference is None or total.args[0] != Ref(weights.name):
        return None
    largest = walk.through(difference.args[1], "amax")
    if largest is None or largest.args[0] != difference.args[0]:
        return None
    last = len(weights.outputs[0].shape) - 1
    along = all(node.args[1] in ((last,), (-1,)) for node in (largest, total))
    return difference.args[0] if along else None


def _causal(walk: _Walk, value: Argument) -> tuple[bool, Argument]:
    """Take ``where(tril(ones), scores, -inf)`` along."""
    node = walk.graph.node(value.name) if isinstance(value, Ref) else None
    mask = causal_mask(walk.graph, node) if node is not None else None
    if node is None or mask is None:
        return False, value
    walk.nodes |= {node.name, *(one.name for one in mask)}
    return True, node.args[1]


def _filled(walk: _Walk, value: Argument) -> tuple[AttentionAttributes, Ref | None, Argument]:
    """Take ``where(mask, number, scores)`` along, or the other way round. The attributes lack the rest."""
    node = walk.graph.node(value.name) if isinstance(value, Ref) else None
    none = AttentionAttributes(scale=1.0)
    if node is None or short_name(node.op) != "where":
        return none, None, value
    mask, taken, other = node.args
    hidden = not isinstance(taken, Ref)
    fill, scores = (taken, other) if hidden else (other, taken)
    if isinstance(fill, bool) or not isinstance(fill, int | float) or not isinstance(scores, Ref):
        return none, None, value
    if not isinstance(mask, Ref):
        return none, None, value
    if walk.graph.spec(mask).dtype != "bool" or walk.graph.spec(scores).shape != node.outputs[0].shape:
        return none, None, value
    walk.nodes.add(node.name)
    return replace(none, fill=float(fill), hidden=hidden), mask, scores


def _mask(walk: _Walk, value: Argument) -> tuple[Ref | None, Argument]:
    """Take the addition of a mask along."""
    node = walk.graph.node(value.name) if isinstance(value, Ref) else None
    if node is None or short_name(node.op) != "add" or node.kwargs:
        return None, value
    scores, mask = node.args[:2]
    if not isinstance(mask, Ref) or not isinstance(scores, Ref):
        return None, value
    if walk.graph.spec(mask).dtype not in _FLOATS or walk.graph.spec(scores).shape != node.outputs[0].shape:
        return None, value
    walk.nodes.add(node.name)
    return mask, scores


def _scale(walk: _Walk, value: Argument) -> tuple[float, Argument]:
    """Take a multiplication by a number along."""
    made, passed = walk.past_views(value)
    node = walk.graph.node(made.name) if isinstance(made, Ref) else None
    number = node.args[1] if node is not None and short_name(node.op) in ("mul", "div") else None
    if node is None or isinstance(number, bool) or not isinstance(number, int | float):
        return 1.0, value
    walk.nodes |= {node.name, *passed}
    return (float(number) if short_name(node.op) == "mul" else 1 / number), node.args[0]


def _keys(walk: _Walk, value: Argument, batches: tuple[int, ...]) -> Ref | None:
    """Return K where `value` is its transpose in the last two dimensions."""
    node = walk.through(value, "permute")
    if node is None or not isinstance(node.args[1], tuple):
        return None
    rank = len(node.outputs[0].shape)
    order = tuple(int(dim) % rank for dim in node.args[1] if isinstance(dim, int))
    if order != (*range(rank - 2), rank - 1, rank - 2):
        return None
    return walk.operand(node.args[0], batches)


def _fit(graph: Graph, operands: tuple[Ref, ...]) -> bool:
    """Return whether operands have one dtype of floats, and the same batches."""
    specs = [graph.spec(ref) for ref in operands]
    q, k, v = (spec.shape for spec in specs)
    same = len({spec.dtype for spec in specs}) == 1 and specs[0].dtype in _FLOATS
    return same and len(q) > 2 and q[:-2] == k[:-2] == v[:-2] and (q[-1], k[-2]) == (k[-1], v[-2])  # noqa: PLR2004


def _expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a tensor of this shape expands to `target`."""
    ends = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(
        one in (1, other) for one, other in zip(shape, ends, strict=True)
    )


def _result(graph: Graph, product: Node, rows: tuple[int, ...], dtype: str, nodes: set[str]) -> Ref | None:
    """Return the output in the query's shape and dtype: the product, past views and conversions of it."""
    wanted = (*rows, product.outputs[0].shape[-1])
    made = product
    while (made.outputs[0].shape, made.outputs[0].dtype) != (wanted, dtype):
        following = [
            node
            for node in graph.nodes
            if short_name(node.op) in _VIEWS
            and node.args[0] == Ref(made.name)
            and node.outputs[0].shape in (made.outputs[0].shape, wanted)
        ]
        if len(following) != 1:
            return None
        made = following[0]
        nodes.add(made.name)
    return Ref(made.name)


def _closed(graph: Graph, nodes: set[str], result: Ref) -> bool:
    """Return whether no value inside but the result is used outside."""
    inner = nodes - {result.name}
    used = {ref.name for node in graph.nodes if node.name not in nodes for ref in operands(node)}
    return not inner & (used | {ref.name for ref in graph.outputs})
