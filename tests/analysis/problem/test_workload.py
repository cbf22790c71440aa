from __future__ import annotations

import math

import pytest

from cutegen_nb.analysis.problem.workload import (
    classify,
    count_flops,
    least_bytes,
    longest_sum,
    names_read,
    parts,
)
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.problem import WorkloadClass


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    strides = tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
    return TensorSpec(shape=shape, dtype=dtype, strides=strides)


def value(name: str, *shape: int, dtype: str = "float32") -> Value:
    return Value(name=name, spec=spec(*shape, dtype=dtype))


def node(name: str, op: str, args: tuple, *shape: int, dtype: str = "float32") -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, kwargs=(), outputs=(spec(*shape, dtype=dtype),))


def graph(inputs: list[Value], nodes: list[Node], parameters: tuple[Value, ...] = ()) -> Graph:
    outputs = (Ref(nodes[-1].name),)
    return Graph(inputs=tuple(inputs), parameters=parameters, nodes=tuple(nodes), outputs=outputs)


X = value("x", 8, 16)


def lowered_softmax(last: list[Node]) -> Graph:
    nodes = [
        node("m", "amax.default", (Ref("x"), (1,), True), 8, 1),
        node("s", "sub.Tensor", (Ref("x"), Ref("m")), 8, 16),
        node("e", "exp.default", (Ref("s"),), 8, 16),
        node("t", "sum.dim_IntList", (Ref("e"), (1,), True), 8, 1),
        *last,
    ]
    return graph([X], nodes)


SOFTMAX = lowered_softmax([node("d", "div.Tensor", (Ref("e"), Ref("t")), 8, 16)])
LOG_SUM_EXP = lowered_softmax(
    [
        node("l", "log.default", (Ref("t"),), 8, 1),
        node("a", "add.Tensor", (Ref("l"), Ref("m")), 8, 1),
    ]
)
RMS_NORM = graph(
    [X],
    [
        node("p", "pow.Tensor_Scalar", (Ref("x"), 2), 8, 16),
        node("m", "mean.dim", (Ref("p"), (1,), True), 8, 1),
        node("r", "rsqrt.default", (Ref("m"),), 8, 1),
        node("o", "mul.Tensor", (Ref("x"), Ref("r")), 8, 16),
    ],
)
SUM = graph([X], [node("s", "sum.dim_IntList", (Ref("x"), (1,), False), 8)])
PRODUCT = graph([X, value("y", 16, 4)], [node("o", "mm.default", (Ref("x"), Ref("y")), 8, 4)])
LOSS = graph(
    [X, value("y", 8, 16)],
    [
        node("d", "sub.Tensor", (Ref("x"), Ref("y")), 8, 16),
        node("q", "mul.Tensor", (Ref("d"), Ref("d")), 8, 16),
        node("o", "mean.dim", (Ref("q"), (0, 1), False)),
    ],
)


@pytest.mark.parametrize(
    ("traced", "expected"),
    [
        (graph([X], [node("r", "relu.default", (Ref("x"),), 8, 16)]), WorkloadClass.ELEMENTWISE),
        (graph([X], [node("r", "permute.default", (Ref("x"), (1, 0)), 16, 8)]), WorkloadClass.OTHER),
        (SUM, WorkloadClass.REDUCTION),
        (LOG_SUM_EXP, WorkloadClass.REDUCTION),
        (SOFTMAX, WorkloadClass.SOFTMAX),
        (graph([X], [node("s", "_softmax.default", (Ref("x"), 1, False), 8, 16)]), WorkloadClass.SOFTMAX),
        (RMS_NORM, WorkloadClass.NORM),
        (LOSS, WorkloadClass.LOSS),
        (PRODUCT, WorkloadClass.MATMUL),
        (graph([X], [node("c", "cumsum.default", (Ref("x"), 1), 8, 16)]), WorkloadClass.SCAN),
    ],
)
def test_each_kind_of_graph_has_its_class(traced, expected):
    assert classify(traced) is expected


def test_a_product_with_arithmetic_after_it_is_fused():
    nodes = [*PRODUCT.nodes, node("r", "relu.default", (Ref("o"),), 8, 4)]
    assert classify(graph(list(PRODUCT.inputs), nodes)) is WorkloadClass.FUSED


def test_two_products_around_a_softmax_are_attention():
    nodes = [
        node("a", "bmm.default", (Ref("q"), Ref("k")), 2, 8, 8),
        node("s", "_softmax.default", (Ref("a"), 2, False), 2, 8, 8),
        node("o", "bmm.default", (Ref("s"), Ref("v")), 2, 8, 4),
    ]
    inputs = [value("q", 2, 8, 4), value("k", 2, 4, 8), value("v", 2, 8, 4)]
    assert classify(graph(inputs, nodes)) is WorkloadClass.ATTENTION


def test_a_product_counts_two_operations_a_multiply_add():
    assert count_flops(PRODUCT) == 2 * 8 * 4 * 16


def test_a_softmax_counts_five_operations_an_element_lowered_or_not():
    named = graph([X], [node("s", "_softmax.default", (Ref("x"), 1, False), 8, 16)])
    assert count_flops(SOFTMAX) == count_flops(named) == 5 * 8 * 16


def test_movement_selection_and_integers_count_nothing():
    moved = graph([X, value("i", 8, 16, dtype="int64")], [
        node("j", "add.Tensor", (Ref("i"), 1), 8, 16, dtype="int64"),
        node("v", "view.default", (Ref("x"), (16, 8)), 16, 8),
        node("w", "where.self", (Ref("j"), Ref("x"), 0.0), 8, 16),
    ])  # fmt: skip
    assert count_flops(moved) == 0


def test_a_transposed_convolution_counts_over_its_input():
    inputs = [value("x", 2, 4, 5, 5), value("w", 4, 3, 3, 3)]
    args = (Ref("x"), Ref("w"), None, (1, 1), (0, 0), (1, 1), True, (0, 0), 1)
    traced = graph(inputs, [node("o", "convolution.default", args, 2, 3, 7, 7)])
    assert count_flops(traced) == 2 * (2 * 4 * 5 * 5) * (3 * 3 * 3)


Q, K, V = value("q", 2, 3, 8, 4), value("k", 2, 3, 6, 4), value("v", 2, 3, 6, 5)
ATTENTION = graph(
    [Q, K, V],
    [node("o", "_scaled_dot_product_flash_attention.default", (Ref("q"), Ref("k"), Ref("v")), 2, 3, 8, 5)],
)


@pytest.mark.parametrize(
    ("traced", "flops"),
    [
        # Scores of 2·3·8·6, each 2·4 FLOPs in Q·Kᵀ, 2·5 in the product with V, 5 in the softmax.
        (ATTENTION, 2 * 3 * 8 * 6 * (2 * 4 + 2 * 5 + 5)),
        (graph([X], [node("p", "max_pool2d_with_indices.default", (Ref("x"), (3, 2)), 4, 7)]), 4 * 7 * 6),
        (graph([X], [node("p", "_adaptive_avg_pool2d.default", (Ref("x"), (2, 2)), 2, 2)]), 8 * 16),
        (
            graph(
                [X, value("c", 4), value("y", 16, 4)],
                [node("o", "addmm.default", (Ref("c"), Ref("x"), Ref("y")), 8, 4)],
            ),
            2 * 8 * 4 * 16 + 8 * 4,
        ),
    ],
    ids=["attention", "pooling", "adaptive pooling", "product and bias"],
)
def test_operations_that_stand_for_several_count_all_of_them(traced, flops):
    assert count_flops(traced) == flops


def test_an_attention_in_one_operator_is_attention():
    assert classify(ATTENTION) is WorkloadClass.ATTENTION


def test_least_bytes_are_each_read_tensor_and_each_result_once():
    nodes = [
        node("a", "mul.Tensor", (Ref("x"), Ref("w")), 8, 16),
        node("b", "add.Tensor", (Ref("a"), Ref("x")), 8, 16),
    ]
    unread = value("unread", 1000)
    traced = graph([X, unread], nodes, (value("w", 16, dtype="float16"),))
    assert least_bytes(traced) == 4 * 128 + 2 * 16 + 4 * 128
    assert "unread" not in names_read(traced)


def test_a_table_that_is_looked_up_in_counts_only_the_rows_taken():
    taken = node("e", "embedding.default", (Ref("table"), Ref("i")), 4, 16)
    traced = graph([value("i", 4, dtype="int64")], [taken], (value("table", 50_000, 16),))
    assert least_bytes(traced) == 4 * 64 + 8 * 4 + 4 * 64


def test_a_broadcast_input_counts_the_elements_it_holds():
    wide = Value(name="x", spec=TensorSpec(shape=(8, 16), dtype="float32", strides=(0, 1)))
    assert least_bytes(graph([wide], [node("r", "relu.default", (Ref("x"),), 8, 16)])) == 4 * 16 + 4 * 128


@pytest.mark.parametrize(
    ("traced", "terms"),
    [
        (SOFTMAX, 16),  # as large out as in: the ratio of elements would say 1
        (SUM, 16),
        (graph([X], [node("c", "cumsum.default", (Ref("x"), 1), 8, 16)]), 16),
        (graph([X, value("w", 16, 4)], [node("p", "mm.default", (Ref("x"), Ref("w")), 8, 4)]), 32),
        (graph([X], [node("r", "relu.default", (Ref("x"),), 8, 16)]), 1),
    ],
    ids=["softmax", "sum", "scan", "product", "element-wise"],
)
def test_the_longest_sum_is_found_inside_the_graph(traced, terms):
    assert longest_sum(traced) == terms


def test_a_fused_graph_says_its_parts_and_a_plain_one_has_none():
    nodes = [*PRODUCT.nodes, node("r", "relu.default", (Ref("o"),), 8, 4)]
    assert parts(graph(list(PRODUCT.inputs), nodes)) == (WorkloadClass.MATMUL,)
    assert parts(PRODUCT) == ()


def recurrent(kind: str, gates: int, *, batch_first: bool) -> Graph:
    """A layer of 5 hidden units and 3 inputs over 7 steps of a batch of 2."""
    weights = (
        value("ih", gates * 5, 3),
        value("hh", gates * 5, 5),
        value("b", gates * 5),
        value("c", gates * 5),
    )
    states = (Ref("h"), Ref("h")) if kind == "lstm" else Ref("h")
    args = (
        Ref("x"),
        states,
        tuple(Ref(item.name) for item in weights),
        True,
        1,
        0.0,
        True,
        False,
        batch_first,
    )
    given = value("x", 2, 7, 3) if batch_first else value("x", 7, 2, 3)
    made = node("r", f"{kind}.input", args, *given.spec.shape[:2], 5)
    return graph([given, value("h", 1, 2, 5)], [made], weights)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("kind", "gates", "beside"), [("lstm", 4, 13), ("gru", 3, 11), ("rnn_tanh", 1, 2)])
def test_a_recurrent_layer_counts_each_weight_once_a_step_and_row(kind, gates, beside, batch_first):
    layer = recurrent(kind, gates, batch_first=batch_first)
    # A step of a row: 2 FLOPs a weight of 5·(3 + 5), 2 biases, and the gates.
    row = gates * 5 * (2 * (3 + 5) + 2) + beside * 5
    assert count_flops(layer) == 7 * 2 * row
    assert longest_sum(layer) == 2 * 5
    assert (classify(layer), parts(layer)) == (WorkloadClass.FUSED, (WorkloadClass.MATMUL,))
