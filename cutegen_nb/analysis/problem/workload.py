"""Workload class, FLOP count and least bytes of a traced reference.

Conventions of counting:

* A multiply-add counts two. Any other point-wise operation on floating-point values counts one per
  element of its result, ``exp`` and ``tanh`` included. Selections, copies, casts and integer or boolean
  results of logic count none; a comparison of floats counts one.
* A reduction counts one per element it reads. ``var`` counts four (mean, difference, square, sum). A mean
  counts one more per result, for its division.
* A product counts 2·M·N·K, a convolution 2·(result elements)·(channels a group)·(kernel extent), a
  transposed one the same over its input, as ``torch.utils.flop_counter`` does; biases are added. Of the
  products around a causal mask counts what the mask leaves. A recurrent layer counts the products of its
  input and of its state in every step, their biases and its gates.
* The least bytes are those of every tensor that is read, once, and of every result, once. A tensor that
  is only sliced or gathered from counts at most what was taken from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cutegen_nb.analysis.problem.causal import causal_shares
from cutegen_nb.analysis.problem.recurrent import RECURRENT, recurrent_flops, recurrent_terms
from cutegen_nb.core.graph import DTYPE_BYTES, Argument, Graph, Node, Ref, TensorSpec
from cutegen_nb.core.problem import WorkloadClass

_MOVEMENT = frozenset({
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "slice", "select", "squeeze",
    "unsqueeze", "cat", "stack", "clone", "alias", "detach", "_to_copy", "convert_element_type", "copy",
    "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "new_zeros", "new_ones", "new_full",
    "scalar_tensor", "empty", "empty_like", "arange", "gather", "index", "index_select", "embedding", "flip",
    "roll", "constant_pad_nd", "triu", "tril", "split", "split_with_sizes", "unbind", "repeat", "where",
    "masked_fill", "as_strided", "lift_fresh", "lift_fresh_copy", "contiguous", "diagonal", "unfold",
    "slice_scatter", "select_scatter", "scatter", "index_put", "pixel_shuffle",
})  # fmt: skip
"""ATen operations that move or select values without arithmetic on them; they count no FLOPs."""

_REDUCTIONS = frozenset({
    "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "var", "std", "var_mean",
    "std_mean", "linalg_vector_norm", "norm", "logsumexp", "any", "all",
})  # fmt: skip
"""ATen operations that reduce one or more dimensions."""
_SOFTMAX = frozenset({"_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax"})
_NORM = frozenset({
    "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training", "_fused_rms_norm",
    "cudnn_batch_norm", "layer_norm", "group_norm", "rms_norm", "_batch_norm_with_update",
})  # fmt: skip
_LOSS = frozenset({
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "nll_loss_forward", "nll_loss2d_forward",
    "binary_cross_entropy", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss_forward",
    "_ctc_loss",
})  # fmt: skip
_MATMUL = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "addr"}) | RECURRENT
_CONVOLUTION = frozenset({"convolution", "_convolution", "cudnn_convolution", "mkldnn_convolution"})
_POOLING = frozenset({
    "max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d",
    "adaptive_max_pool3d",
})  # fmt: skip
_SCAN = frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"})
"""ATen operations whose results are running reductions."""
_OTHER = frozenset({
    "sort", "topk", "nonzero", "unique", "grid_sampler_2d", "_fft_r2c", "_fft_c2c", "cdist",
})  # fmt: skip
"""ATen operations that dominate a problem but belong to no other class."""

_KINDS: tuple[tuple[WorkloadClass, frozenset[str]], ...] = (
    (WorkloadClass.SOFTMAX, _SOFTMAX),
    (WorkloadClass.NORM, _NORM),
    (WorkloadClass.POOLING, _POOLING),
    (WorkloadClass.SCAN, _SCAN),
    (WorkloadClass.MATMUL, _MATMUL),
    (WorkloadClass.CONVOLUTION, _CONVOLUTION),
    (WorkloadClass.OTHER, _OTHER),
)
"""ATen operations of each workload class that an operation's name alone determines."""
_BY_ARITHMETIC = (
    WorkloadClass.CONVOLUTION,
    WorkloadClass.MATMUL,
    WorkloadClass.SOFTMAX,
    WorkloadClass.NORM,
    WorkloadClass.SCAN,
    WorkloadClass.POOLING,
    WorkloadClass.REDUCTION,
)
"""Workload classes by their usual amount of arithmetic, most first."""
_SAMPLES = frozenset({"gather", "index", "index_select", "embedding", "slice", "select"})
"""Operations that read at most as much of their first tensor (an embedding's weight) as they return."""


def base_name(op: str) -> str:
    """Return an operation's base name: ``relu`` for ``aten.relu.default``."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


def refs_in(argument: Argument) -> tuple[Ref, ...]:
    """Return every tensor named in an operand, nested tuples included."""
    if isinstance(argument, Ref):
        return (argument,)
    if isinstance(argument, tuple):
        return tuple(ref for item in argument for ref in refs_in(item))
    return ()


def operands(node: Node) -> tuple[Ref, ...]:
    """Return every tensor that `node` reads, in order, with repetitions."""
    return refs_in((node.args, tuple(value for _, value in node.kwargs)))


def names_read(graph: Graph) -> frozenset[str]:
    """Return the names that a node reads or that the graph returns."""
    return frozenset(ref.name for node in graph.nodes for ref in operands(node)) | {
        ref.name for ref in graph.outputs
    }


# -- class ------------------------------------------------------------------------------------------------


def classify(graph: Graph) -> WorkloadClass:
    """Return the workload class that dominates a graph.

    Classification is most reliable on the reference's own ATen calls (``softmax`` as one node). In a lowered
    graph, softmax and norms are recognised by a reduction whose result meets values of the reduced shape
    again.
    """
    names = [base_name(node.op) for node in graph.nodes]
    if any(name.startswith("_scaled_dot_product") for name in names):
        return WorkloadClass.ATTENTION
    kinds = _kinds(graph)
    # Scores and their product with the values, around a softmax.
    if names.count("bmm") > 1 and WorkloadClass.SOFTMAX in kinds:
        return WorkloadClass.ATTENTION
    heavy = kinds & {WorkloadClass.MATMUL, WorkloadClass.CONVOLUTION}
    if _is_loss(graph, names) and not heavy:
        return WorkloadClass.LOSS
    if heavy:
        more = _LOSS | RECURRENT  # a recurrent layer is products and the gates after them
        alone = len(kinds) == 1 and not more.intersection(names) and not any(map(is_pointwise, graph.nodes))
        return next(iter(kinds)) if alone else WorkloadClass.FUSED
    if len(kinds) > 1:
        return WorkloadClass.FUSED
    if kinds:
        return next(iter(kinds))
    return WorkloadClass.ELEMENTWISE if any(map(is_pointwise, graph.nodes)) else WorkloadClass.OTHER


def parts(graph: Graph) -> tuple[WorkloadClass, ...]:
    """Return the workload classes of a fused graph, the one with the most arithmetic first.

    Empty where the graph is of one class only.
    """
    if classify(graph) is not WorkloadClass.FUSED:
        return ()
    kinds = _kinds(graph)
    return tuple(kind for kind in _BY_ARITHMETIC if kind in kinds)


def _kinds(graph: Graph) -> set[WorkloadClass]:
    """Return the workload classes found in a graph, point-wise arithmetic left out."""
    names = [base_name(node.op) for node in graph.nodes]
    kinds = {kind for kind, members in _KINDS if members.intersection(names)}
    return kinds | _reduction_kinds(graph, kinds)


def _is_loss(graph: Graph, names: list[str]) -> bool:
    """Return whether a graph calls a named loss, or reduces several inputs to outputs of one element each."""
    if _LOSS.intersection(names):
        return True
    whole = all(spec.elements == 1 for spec in graph.output_specs)
    return whole and len(graph.inputs) > 1 and any(name in _REDUCTIONS for name in names)


def is_pointwise(node: Node) -> bool:
    """Return whether a node does arithmetic on each element by itself."""
    name = base_name(node.op)
    known = _MOVEMENT | _REDUCTIONS | _LOSS
    return name not in known and not any(name in members for _, members in _KINDS) and bool(node.outputs)


def is_movement(node: Node) -> bool:
    """Return whether a node moves or selects values without arithmetic on them."""
    return base_name(node.op) in _MOVEMENT


def _reduction_kinds(graph: Graph, kinds: set[WorkloadClass]) -> set[WorkloadClass]:
    """Return REDUCTION, or NORM or SOFTMAX where the reduced values are broadcast back to the original shape.

    A reduction next to a named softmax or norm belongs to it only where it is part of the same pattern. A
    mean after a softmax therefore gives both classes.
    """
    reductions = [node for node in graph.nodes if base_name(node.op) in _REDUCTIONS and node.outputs]
    if not reductions:
        return set()
    back = [node for node in reductions if _goes_back(graph, node)]
    if not back:
        return {WorkloadClass.REDUCTION} if not kinds & {WorkloadClass.SCAN} else set()
    if any(base_name(node.op) == "sum" and _comes_from_exp(graph, node) for node in back):
        rest = {WorkloadClass.REDUCTION} if _ends_reduced(graph, reductions) else set()
        return {WorkloadClass.SOFTMAX} | rest
    # A final reduction, such as the sum in log-sum-exp after its maximum, is the purpose of the graph.
    return {WorkloadClass.NORM} if reductions[-1] in back else {WorkloadClass.REDUCTION}


def _input_elements(graph: Graph, node: Node) -> int:
    refs = operands(node)
    return graph.spec(refs[0]).elements if refs else 0


def _goes_back(graph: Graph, reduction: Node) -> bool:
    """Return whether a point-wise result that depends on `reduction` has at least the reduced shape again."""
    wide = _input_elements(graph, reduction)
    if wide <= reduction.outputs[0].elements:
        return False
    reached = {reduction.name}
    for node in graph.nodes:
        if not any(ref.name in reached for ref in operands(node)):
            continue
        reached.add(node.name)
        if is_pointwise(node) and node.outputs[0].elements >= wide:
            return True
    return False


def _ends_reduced(graph: Graph, reductions: list[Node]) -> bool:
    """Return whether all outputs are smaller than the widest reduced input: the last step reduces as well."""
    widest = max(_input_elements(graph, node) for node in reductions)
    return all(spec.elements < widest for spec in graph.output_specs)


def _comes_from_exp(graph: Graph, reduction: Node) -> bool:
    source = operands(reduction)[0]
    producer = graph.node(source.name)
    while producer is not None and base_name(producer.op) in _MOVEMENT and operands(producer):
        producer = graph.node(operands(producer)[0].name)
    return producer is not None and base_name(producer.op) in {"exp", "exp2"}


# -- operations --------------------------------------------------------------------------------------------


def count_flops(graph: Graph) -> int:
    """Return the FLOPs of the whole graph, by the conventions of this module's docstring."""
    shares = causal_shares(graph)
    return sum(round(node_flops(graph, node) * shares.get(node.name, 1.0)) for node in graph.nodes)


def longest_sum(graph: Graph) -> int:
    """Return roughly the number of terms in the graph's longest sum, at least 1.

    Rounding error grows with this number. A scan counts the extent it runs over. Any other operation counts
    its FLOPs per result element, so a product counts each term twice.
    """
    return max((_terms(graph, node) for node in graph.nodes), default=1)


def _terms(graph: Graph, node: Node) -> int:
    if not node.outputs or not node.outputs[0].elements:
        return 1
    if base_name(node.op) in _SCAN:
        # The scanned dimension is not looked up; the longest one is an upper bound.
        return max(node.outputs[0].shape, default=1)
    if base_name(node.op) in RECURRENT:
        return recurrent_terms(graph, node)
    return max(1, node_flops(graph, node) // node.outputs[0].elements)


def node_flops(graph: Graph, node: Node) -> int:
    """Return the FLOPs of one node; a causal mask around it is not looked at."""
    name = base_name(node.op)
    if not node.outputs or name in _MOVEMENT:
        return 0
    rule = _RULES.get(name)
    if rule is not None:
        return rule(graph, node)
    if name.startswith("_scaled_dot_product"):
        return _attention_flops(graph, node)
    if name in _POOLING:
        return _pooling_flops(graph, node)
    if not _computes_floats(graph, node):
        return 0
    if name in _PER_INPUT_ELEMENT:
        return _PER_INPUT_ELEMENT[name] * _input_elements(graph, node)
    return node.outputs[0].elements


def _computes_floats(graph: Graph, node: Node) -> bool:
    specs = [node.outputs[0], *(graph.spec(ref) for ref in operands(node))]
    return any("float" in spec.dtype for spec in specs)


_PER_INPUT_ELEMENT: dict[str, int] = {
    **dict.fromkeys(("sum", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "any", "all"), 1),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), 4),
    **dict.fromkeys(("linalg_vector_norm", "norm", "logsumexp"), 2),
    **dict.fromkeys(_SCAN, 1),
    **dict.fromkeys(_SOFTMAX, 5),
    **dict.fromkeys(_NORM, 8),
    **dict.fromkeys(("mse_loss", "l1_loss"), 3),
    **dict.fromkeys(("smooth_l1_loss", "huber_loss"), 6),
    **dict.fromkeys(("binary_cross_entropy", "soft_margin_loss"), 8),
}
"""FLOPs per input element of reductions and of compound operations that a lowered graph no longer holds. For
the latter the number is that of their lowering, rounded."""


def _mean_flops(graph: Graph, node: Node) -> int:
    return _input_elements(graph, node) + node.outputs[0].elements


def _product_flops(graph: Graph, node: Node) -> int:
    """Return 2·M·N·K for ``mm``, ``bmm``, ``mv``, ``dot``: 2·(result elements)·(the summed extent)."""
    return 2 * node.outputs[0].elements * graph.spec(operands(node)[0]).shape[-1]


def _product_and_add_flops(graph: Graph, node: Node) -> int:
    """Return the FLOPs of ``addmm``, ``baddbmm``, ``addmv``.

    Product of operands two and three, plus operand one.
    """
    out = node.outputs[0].elements
    return 2 * out * graph.spec(operands(node)[1]).shape[-1] + out


def _convolution_flops(graph: Graph, node: Node) -> int:
    """Return the FLOPs of a convolution, bias included.

    The operands are (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups).
    """
    source, weight, bias = (graph.spec(arg) if isinstance(arg, Ref) else None for arg in node.args[:3])
    assert source is not None
    assert weight is not None
    transposed = bool(node.args[6])
    # weight: (out, in/groups, kernel…); transposed: (in, out/groups, kernel…). Each element of the
    # result (transposed: of the input) meets one group's channels times the kernel.
    over = source if transposed else node.outputs[0]
    added = node.outputs[0].elements if bias is not None else 0
    return 2 * over.elements * math.prod(weight.shape[1:]) + added


def _attention_flops(graph: Graph, node: Node) -> int:
    """Return the FLOPs of two products and a softmax over (batch, heads, length, width) operands."""
    query, key, value = (graph.spec(ref).shape for ref in operands(node)[:3])
    # scores = batch · heads · query length · key length; each costs 2·width FLOPs in Q·Kᵀ, 2·value width in
    # the product with V, and 5 for its softmax.
    scores = math.prod(query[:-1]) * key[-2]
    return 2 * scores * query[-1] + 2 * scores * value[-1] + 5 * scores


def _pooling_flops(graph: Graph, node: Node) -> int:
    """Return one FLOP per element of each window; an adaptive pool's windows cover its input about once."""
    if "adaptive" in node.op:
        return _input_elements(graph, node)
    kernel = node.args[1]
    extent = math.prod(size for size in kernel if isinstance(size, int)) if isinstance(kernel, tuple) else 1
    return node.outputs[0].elements * extent


_RULES: dict[str, Callable[[Graph, Node], int]] = {
    "mean": _mean_flops,
    **dict.fromkeys(("mm", "bmm", "mv", "dot"), _product_flops),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _product_and_add_flops),
    **dict.fromkeys(_CONVOLUTION, _convolution_flops),
    **dict.fromkeys(RECURRENT, recurrent_flops),
    "addr": lambda _, node: 2 * node.outputs[0].elements,
    "nll_loss_forward": lambda _, node: 2 * node.outputs[0].elements,
}
"""Operations whose FLOPs depend on more than the sizes of result or first input."""


# -- bytes ---------------------------------------------------------------------------------------------------


def least_bytes(graph: Graph) -> int:
    """Return the bytes that any kernel has to move: every tensor read once, every result written once."""
    given = (*graph.inputs, *graph.parameters)
    names = {value.name for value in given}
    read = sum(_bytes_read(graph, value.name, value.spec) for value in given)
    returned = {ref for ref in graph.outputs if ref.name not in names}
    return read + sum(graph.spec(ref).size_bytes for ref in returned)


def _bytes_read(graph: Graph, name: str, spec: TensorSpec) -> int:
    """Return the bytes of one tensor that are needed; a broadcast dimension (stride 0) counts once."""
    readers = [node for node in graph.nodes if any(ref.name == name for ref in operands(node))]
    if not readers:
        return 0
    width = DTYPE_BYTES[spec.dtype]
    distinct = math.prod(size for size, stride in zip(spec.shape, spec.strides, strict=True) if stride)
    sampled = all(base_name(node.op) in _SAMPLES and operands(node)[0].name == name for node in readers)
    taken = sum(node.outputs[0].elements for node in readers) if sampled else distinct
    return width * min(distinct, taken)
