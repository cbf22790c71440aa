from __future__ import annotations

import math
import resource

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.graph import Graph, Ref
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.evaluator.problem.aten_aliases import TAKES_NUMBER
from cutegen_nb.evaluator.problem.inputs import draw
from cutegen_nb.evaluator.problem.loader import load
from cutegen_nb.evaluator.problem.trace import trace, trace_facts

torch.set_num_threads(1)


def function(
    expression: str,
    inputs: str = "[torch.rand(M, N)]",
    arguments: str = "x",
    sizes: str = "M, N = 4096, 8190",
):
    """A problem whose reference is one expression."""
    source = (
        f"import torch\nimport torch.nn.functional as F\n{sizes}\n"
        f"def reference({arguments}):\n    return {expression}\ndef get_inputs():\n    return {inputs}\n"
    )
    return problem_from_string(source, name="p")


def model(init: str, forward: str, inputs: str, sizes: str = "N = 4096"):
    source = (
        f"import torch\n{sizes}\nclass Model(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        f"        {init}\n    def forward(self, x):\n        {forward}\n"
        f"def get_init_inputs():\n    return [N]\ndef get_inputs():\n    return {inputs}\n"
    )
    return problem_from_string(source, name="p")


def computed(graph: Graph, arguments: list, state: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The graph's outputs, computed node by node with torch, and every shape and dtype checked."""
    values = {value.name: (arguments[int(value.path)],) for value in graph.inputs}
    values |= {value.name: (state[value.path],) for value in graph.parameters}

    def operand(arg):
        if isinstance(arg, Ref):
            return values[arg.name][arg.index]
        return [operand(item) for item in arg] if isinstance(arg, tuple) else arg

    for node in graph.nodes:
        _, base, overload = node.op.split(".")
        args = [operand(arg) for arg in node.args]
        keywords = {key: getattr(torch, arg) if key == "dtype" else operand(arg) for key, arg in node.kwargs}
        if base == "view":
            result = args[0].reshape(args[1])
        elif base == "var":
            result = torch.var(args[0], args[1], correction=args[2], keepdim=args[3])
        elif base == "prod":
            result = args[0].prod(dim=args[1][0], keepdim=args[2])
        elif base in TAKES_NUMBER:
            result = getattr(torch, base)(*args, **keywords).to(getattr(torch, node.outputs[0].dtype))
        else:
            result = getattr(getattr(torch.ops.aten, base), overload)(*args, **keywords)
        results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        for spec, tensor in zip(node.outputs, results, strict=False):
            assert (spec.shape, f"torch.{spec.dtype}") == (tuple(tensor.shape), str(tensor.dtype)), node
        values[node.name] = results
    return [operand(ref) for ref in graph.outputs]


def check_against_forward(problem) -> ProblemFacts:
    """The scaled graph, computed, has to give what the reference gives."""
    facts = trace_facts(problem)
    loaded = load(problem, facts.scaled.rewrites)
    reference, arguments = loaded.reference(5, "cpu"), draw(loaded, 6, "cpu")
    state = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    with torch.no_grad():
        expected = reference(*[a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
    expected = pytree.tree_leaves(expected)
    for got, wanted in zip(computed(facts.scaled.graph, arguments, state), expected, strict=True):
        tolerance = 1e-2 if wanted.dtype in {torch.float16, torch.bfloat16} else 3e-5
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)
    return facts


POINTWISE = (
    "torch.relu(x)", "F.leaky_relu(x - 0.5)", "torch.sigmoid(x)", "F.silu(x)", "F.gelu(x)", "F.gelu(x, approximate='tanh')",
    "F.selu(x - 0.5)", "F.elu(x - 0.5)", "F.hardsigmoid(8 * x - 4)", "F.hardswish(8 * x - 4)", "F.softplus(x)", "F.softsign(x)",
    "F.hardtanh(x * 3 - 1)", "F.mish(x)", "F.celu(x - 0.5)", "F.logsigmoid(x)", "F.softshrink(x)", "F.hardshrink(x)",
    "F.threshold(x, 0.5, 0.1)", "F.relu6(9 * x)", "F.glu(x)", "x.clamp_min(0.2)", "x.clamp(max=0.7)", "1 - x", "2 / (x + 1)",
    "x ** 3", "torch.where(x > 0.5, x, -x)", "x.masked_fill(x < 0.1, -1.0)", "torch.lerp(x, x * x, 0.3)", "x.half() * 2",
    "torch.addcmul(x, x, x, value=0.5)", "x.square() + x.neg().exp()", "torch.maximum(x, x * 0 + 0.5)", "torch.atan2(x, x + 1)",
    "x.tril()", "x[:, ::2]", "x.t().contiguous().view(-1)", "torch.cat([x, x], dim=-1)", "x.add(x, alpha=2)", "x // 0.3",
)  # fmt: skip
REDUCED = (
    "x.sum()", "x.mean(dim=-1)", "x.amax(0, keepdim=True)", "torch.max(x, dim=1)[0]", "torch.min(x, dim=1).indices", "x.max()",
    "torch.argmax(x)", "x.argmin(dim=-1, keepdim=True)", "x.std(dim=1)", "x.var()", "x.prod(dim=1)", "x.norm()", "x.norm(p=1, dim=1)",
    "torch.linalg.vector_norm(x, ord=float('inf'), dim=1)", "torch.logsumexp(x, 1)", "F.softmax(x, 0)", "F.log_softmax(x, -1)",
    "F.layer_norm(x, (x.shape[1],))", "F.normalize(x)", "x.cumsum(-1)", "x.flip(0).cumprod(1)", "F.rms_norm(x, (x.shape[1],))",
    "torch.var_mean(x, dim=1)", "F.softmin(x, 1)", "(x.sum(1), {'m': x.mean()})",
)  # fmt: skip
LOSSES = (
    "F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)", "F.huber_loss(x, y, delta=0.3)", "F.kl_div(torch.log(x), y, reduction='batchmean')",
    "F.binary_cross_entropy(x, y)", "F.binary_cross_entropy_with_logits(x, y)", "F.triplet_margin_loss(x, y, x * y)",
    "torch.mean(torch.clamp(1 - x * y, min=0))", "F.cosine_similarity(x, y).mean()", "F.soft_margin_loss(x, y)",
)  # fmt: skip


@pytest.mark.every(test=5)
@pytest.mark.parametrize("expression", POINTWISE + REDUCED)
def test_the_graph_of_one_tensor_computes_what_forward_computes(expression):
    check_against_forward(function(expression))


@pytest.mark.every(test=3)
@pytest.mark.parametrize("expression", LOSSES)
def test_the_graph_of_a_loss_computes_what_forward_computes_and_is_a_loss(expression):
    facts = check_against_forward(function(expression, "[torch.rand(M, N), torch.rand(M, N)]", "x, y"))
    assert facts.workload_class is WorkloadClass.LOSS


def test_cross_entropy_is_a_loss_whose_class_count_scales_with_its_targets():
    problem = function("F.cross_entropy(x, t)", "[torch.rand(M, N), torch.randint(0, N, (M,))]", "x, t")
    assert check_against_forward(problem).workload_class is WorkloadClass.LOSS


LAYERS = {
    "torch.nn.BatchNorm2d(n)": ("[torch.rand(64, N, 64, 64)]", "N = 64", WorkloadClass.NORM),
    "torch.nn.BatchNorm2d(n).eval()": ("[torch.rand(64, N, 64, 64)]", "N = 64", WorkloadClass.NORM),
    "torch.nn.InstanceNorm2d(n, affine=True)": ("[torch.rand(64, N, 64, 64)]", "N = 64", WorkloadClass.NORM),
    "torch.nn.GroupNorm(8, n)": ("[torch.rand(64, N, 64, 64)]", "N = 64", WorkloadClass.NORM),
    "torch.nn.LayerNorm((n, 32))": ("[torch.rand(512, N, 32)]", "N = 4096", WorkloadClass.NORM),
    "torch.nn.LayerNorm(n).bfloat16()": ("[torch.rand(4096, N).bfloat16()]", "N = 4096", WorkloadClass.NORM),
    "torch.nn.RMSNorm(n)": ("[torch.rand(4096, N)]", "N = 4096", WorkloadClass.NORM),
    "torch.nn.Linear(n, n)": ("[torch.rand(4096, N)]", "N = 4096", WorkloadClass.MATMUL),
    "torch.nn.Linear(n, n, bias=False).half()": ("[torch.rand(4096, N).half()]", "N = 4096", WorkloadClass.MATMUL),
    "torch.nn.Conv2d(n, 2 * n, 3, padding=1)": ("[torch.rand(64, N, 128, 128)]", "N = 64", WorkloadClass.CONVOLUTION),
    "torch.nn.ConvTranspose1d(n, n, 3, stride=2)": ("[torch.rand(64, N, 4096)]", "N = 64", WorkloadClass.CONVOLUTION),
    "torch.nn.MaxPool2d(2)": ("[torch.rand(64, N, 128, 128)]", "N = 64", WorkloadClass.POOLING),
    "torch.nn.AvgPool1d(4)": ("[torch.rand(64, N, 4096)]", "N = 64", WorkloadClass.POOLING),
    "torch.nn.Softmax(dim=-1)": ("[torch.rand(4096, N)]", "N = 4096", WorkloadClass.SOFTMAX),
    "torch.nn.Sequential(torch.nn.Linear(n, n), torch.nn.GELU())": ("[torch.rand(4096, N)]", "N = 4096", WorkloadClass.FUSED),
}  # fmt: skip


@pytest.mark.every(test=3)
@pytest.mark.parametrize("layer", LAYERS)
def test_the_graph_of_a_layer_computes_what_forward_computes(layer):
    inputs, sizes, expected = LAYERS[layer]
    assert (
        check_against_forward(
            model(f"self.layer = {layer}", "return self.layer(x)", inputs, sizes)
        ).workload_class
        is expected
    )


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_recognised_and_lowered_to_products_and_a_softmax(causal):
    shape = "torch.rand(8, 16, 512, 64)"
    problem = function(
        f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})",
        f"[{shape}, {shape}, {shape}]",
        "q, k, v",
    )
    facts = check_against_forward(problem)
    assert facts.workload_class is WorkloadClass.ATTENTION
    assert facts.warnings == ()


def test_attention_whose_keys_have_fewer_heads_is_lowered():
    problem = function(
        "F.scaled_dot_product_attention(q, k, v, enable_gqa=True)",
        "[torch.rand(4, 8, 64, 32), torch.rand(4, 2, 64, 32), torch.rand(4, 2, 64, 32)]",
        "q, k, v",
    )
    assert check_against_forward(problem).workload_class is WorkloadClass.ATTENTION


def test_a_problem_of_terabytes_is_traced_without_allocating():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problem = function("(x.sin() @ x.t()).softmax(1)", sizes="M, N = 400_000, 1_000_000")
    facts = trace_facts(problem)
    assert facts.full.graph.inputs[0].spec.elements == 400_000_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def test_both_sizes_have_the_same_operations_and_the_rewrites_lead_from_one_to_the_other():
    problem = function("F.gelu(x @ y)", "[torch.rand(M, N), torch.rand(N, M)]", "x, y")
    facts = trace_facts(problem)
    assert [node.op for node in facts.full.graph.nodes] == [node.op for node in facts.scaled.graph.nodes]
    assert facts.full.rewrites == ()
    shapes = [tuple(tensor.shape) for tensor in draw(load(problem, facts.scaled.rewrites), 0, "cpu")]
    assert shapes == [value.spec.shape for value in facts.scaled.graph.inputs]
    assert facts.scaled.flops <= 2**26 < facts.full.flops
    assert "4096, 8190" in problem.source


def test_the_groups_of_a_norm_keep_their_channels_at_the_smaller_size():
    problem = model(
        "self.norm = torch.nn.GroupNorm(G, n)",
        "return self.norm(x)",
        "[torch.rand(1024, N)]",
        sizes="N, G = 8192, 512",
    )
    facts = trace_facts(problem)
    view = next(node for node in facts.scaled.graph.nodes if len(node.outputs[0].shape) == 3)
    assert facts.scaled.rewrites
    assert view.outputs[0].shape[-1] == 16


def test_a_small_problem_runs_at_its_own_size():
    facts = trace_facts(function("x + 1", sizes="M, N = 33, 7"))
    assert facts.scaled == facts.full
    assert facts.scaled.graph.inputs[0].spec.shape == (33, 7)


def test_numbers_and_scalar_tensors_are_inputs_and_module_numbers_are_in_the_operations():
    source = (
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.s = torch.tensor(2.5)\n    def forward(self, a, f, b, c):\n"
        "        return a * f + b * self.s + torch.tensor(1.5) if c else a\n"
        "def get_inputs():\n    return [torch.rand(4096, 4096), 3.5, torch.rand(()), True]\n"
    )
    graph = check_against_forward(problem_from_string(source, name="p")).scaled.graph
    assert graph.scalars == ((1, 3.5), (3, True))
    assert [(value.name, value.path) for value in graph.inputs] == [("a", "0"), ("b", "2")]
    assert graph.constants == ()
    assert [arg for node in graph.nodes for arg in node.args if isinstance(arg, float)] == [3.5, 2.5, 1.5]


def test_only_parameters_that_forward_reads_are_in_the_graph_by_their_path():
    init = "self.body = torch.nn.Linear(n, 8); self.unused = torch.nn.Linear(n, 8)"
    graph = trace_facts(model(init, "return self.body(x)", "[torch.rand(4096, N)]")).full.graph
    assert {value.path for value in graph.parameters} == {"body.weight", "body.bias"}


def test_batch_norms_running_statistics_are_no_outputs():
    graph = trace_facts(
        model("self.b = torch.nn.BatchNorm1d(n)", "return self.b(x)", "[torch.rand(64, N)]")
    ).full.graph
    assert len(graph.outputs) == 1
    assert {value.path for value in graph.parameters} == {"b.weight", "b.bias"}


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("x + torch.randn_like(x)", "draws random numbers (aten.randn_like"),
        ("F.dropout(x)", "draws random numbers"),
        ("x.mul_(2).add_(1)", "writes to its own input x"),
        ("torch.ones(4096)", "does not read its input x"),
    ],
)
def test_a_person_is_warned_of_what_makes_a_comparison_doubtful(expression, part):
    assert any(part in warning for warning in trace_facts(function(expression)).warnings)


def test_a_problem_that_cannot_be_made_smaller_keeps_its_size_with_a_warning():
    facts = trace_facts(
        model("self.w = torch.nn.Linear(4096, 4096)", "return self.w(x)", "[torch.rand(4096, N)]")
    )
    assert "it runs at its full size of 50.3 million elements" in facts.simulator_warning
    assert facts.warnings_on(DeviceKind.SIMULATOR) == (facts.simulator_warning,)
    assert facts.warnings_on(DeviceKind.GPU) == ()
    assert facts.scaled.graph == facts.full.graph


def test_a_problem_that_cannot_be_made_small_enough_is_made_as_small_as_it_can():
    """The layers fix the channels, as in a whole network; batch and image shrink, but not to one place."""
    facts = trace_facts(
        model(
            "self.a = torch.nn.Conv2d(3, 1024, 3, 2, 1); self.b = torch.nn.Conv2d(1024, 64, 3, 2, 1)",
            "return self.b(self.a(x)).mean((2, 3))",
            "[torch.rand(16, 3, 224, 224)]",
        )
    )
    (batch, _, height, width) = facts.scaled.graph.inputs[0].spec.shape
    assert batch < 16
    assert 8 <= height == width < 224
    assert "it runs at a smaller size of 0.6 million elements" in facts.simulator_warning


def test_the_dtype_is_that_of_the_first_floating_input():
    problem = function(
        "F.embedding(i, w)", "[torch.randint(0, N, (M,)), torch.rand(N, 64).bfloat16()]", "i, w"
    )
    assert trace_facts(problem).dtype == "bfloat16"


def test_cuda_in_a_problem_does_not_keep_it_from_being_traced():
    assert trace_facts(function("x.cuda() * 2", "[torch.rand(M, N, device='cuda')]")).warnings == ()


def test_facts_travel_as_text():
    facts = trace_facts(
        model(
            "self.w = torch.nn.Linear(n, n)",
            "return torch.nn.functional.gelu(self.w(x))",
            "[torch.rand(4096, N)]",
        )
    )
    assert decode(ProblemFacts, encode(facts)) == facts


@pytest.mark.parametrize(
    ("expression", "inputs", "arguments"),
    [
        ("x @ y", "[torch.rand(64, 128), torch.rand(128, 32)]", "x, y"),
        ("x @ y", "[torch.rand(4, 64, 128), torch.rand(4, 128, 32)]", "x, y"),
        (
            "F.conv2d(x, w, stride=2, padding=1, groups=2)",
            "[torch.rand(2, 8, 16, 16), torch.rand(6, 4, 3, 3)]",
            "x, w",
        ),
        (
            "F.conv_transpose2d(x, w, stride=2, groups=2)",
            "[torch.rand(2, 8, 16, 16), torch.rand(8, 4, 3, 3)]",
            "x, w",
        ),
        ("F.conv3d(x, w)", "[torch.rand(2, 4, 8, 8, 8), torch.rand(6, 4, 3, 3, 3)]", "x, w"),
    ],
)
def test_products_and_convolutions_count_as_many_operations_as_torch_counts(expression, inputs, arguments):
    problem = function(expression, inputs, arguments)
    loaded = load(problem, ())
    counter = FlopCounterMode(display=False)
    with counter:
        loaded.reference(0, "cpu")(*draw(loaded, 0, "cpu"))
    assert trace_facts(problem).full.flops == counter.get_total_flops() > 0


def test_attention_counts_what_torch_counts_and_its_softmax():
    shape = "torch.rand(2, 2, 16, 32)"
    problem = function("F.scaled_dot_product_attention(q, k, v)", f"[{shape}, {shape}, {shape}]", "q, k, v")
    loaded = load(problem, ())
    counter = FlopCounterMode(display=False)
    with counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        loaded.reference(0, "cpu")(*draw(loaded, 0, "cpu"))
    scores = 2 * 2 * 16 * 16
    assert 5 * scores <= trace_facts(problem).full.flops - counter.get_total_flops() <= 6 * scores


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("x @ torch.rand(3)", "raised RuntimeError: size mismatch, got input (4096x8190), vec (3) at line 5"),
        ("'abc'", "returned a str ('abc')"),
        ("None", "returned a NoneType"),
        ("(x, 3)", "returned a int (3) as element 1 of its result"),
        ("[]", "returned nothing"),
        ("x * x.sum().item()", "reads the values of a tensor at line 5"),
        ("x[x > 0.5]", "reads the values of a tensor at line 5"),
        ("torch.fft.fft(x)", "dtype complex64"),
        ("(x * 2j).real", "complex operand (2j)"),
        ("undefined(x)", "NameError: name 'undefined' is not defined at line 5 (`return undefined(x)`)"),
        ("x.foo()", "AttributeError"),
    ],
)
def test_a_reference_that_cannot_be_traced_gets_one_sentence(expression, part):
    with pytest.raises(ProblemError) as caught:
        trace_facts(function(expression))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_arguments_and_missing_ones_get_one_sentence():
    with pytest.raises(ProblemError, match="takes 1 positional argument but 2 were given"):
        trace_facts(function("x", "[torch.rand(3), torch.rand(3)]"))


def test_failed_sizes_print_nothing(capfd):
    trace_facts(model("self.w = torch.nn.Linear(4096, 4096)", "return self.w(x)", "[torch.rand(4096, N)]"))
    assert capfd.readouterr() == ("", "")


def test_a_trace_before_lowering_keeps_softmax_whole():
    assert [node.op for node in trace(function("F.softmax(x, 1)"), ()).graph.nodes] == [
        "aten._softmax.default"
    ]


def test_a_softmax_over_full_size_counts_its_least_bytes():
    facts = trace_facts(function("F.softmax(x, 1)"))
    assert facts.full.least_bytes == 2 * 4 * math.prod((4096, 8190))


def test_what_a_problem_prints_is_heard_for_the_two_sizes_that_count_and_no_more(capsys):
    problem = problem_from_string("print('hello')\n" + function("x + 1").source, name="p")
    trace_facts(problem)
    assert capsys.readouterr().out == "hello\n" * 2


def test_a_view_of_a_result_whose_strides_the_lowering_changes_is_still_traced():
    shape = "torch.rand(8, 512, 16, 64).transpose(1, 2)"
    attention = "F.scaled_dot_product_attention(q, k, v).transpose(1, 2).view(q.shape[0], q.shape[2], -1)"
    check_against_forward(function(attention, f"[{shape}, {shape}, {shape}]", "q, k, v"))


def test_a_constructor_may_read_the_values_of_a_small_tensor():
    init = "self.rates = [rate.item() for rate in torch.linspace(0.5, 1, 2)]; self.fc = torch.nn.Linear(n, n)"
    facts = check_against_forward(model(init, "return self.fc(x) * self.rates[1]", "[torch.rand(64, N)]"))
    assert facts.full.graph.parameters[0].spec.shape == (4096, 4096)


def test_a_constructor_that_reads_the_values_of_a_large_tensor_is_refused():
    problem = model(
        "self.first = torch.rand(n, n)[0, 0].item()", "return x * self.first", "[torch.rand(64, N)]"
    )
    with pytest.raises(ProblemError, match=r"constructor .* reads the values of a tensor"):
        trace_facts(problem)


def test_an_attribute_that_each_call_overwrites_is_traced():
    init = "self.held = torch.zeros(64, n); self.mask = torch.ones(n)"
    check_against_forward(model(init, "self.held.copy_(x); return self.held + 1", "[torch.rand(64, N)]"))


def test_an_attribute_that_is_only_read_stays_a_constant_beside_one_that_is_overwritten():
    init = "self.held = torch.zeros(64, n); self.mask = torch.ones(n)"
    problem = model(init, "self.held.copy_(x); return self.held * self.mask", "[torch.rand(64, N)]")
    assert len(trace_facts(problem).full.graph.constants) == 1


def test_an_attribute_that_one_call_leaves_for_the_next_is_refused():
    problem = model(
        "self.total = torch.zeros(n)", "self.total.add_(x[0]); return x + self.total", "[torch.rand(64, N)]"
    )
    with pytest.raises(
        ProblemError, match=r"changes self\.total in place and reads what the call before left"
    ):
        trace_facts(problem)


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "layer",
    [
        "LSTM(n, 96, 2, batch_first=True)",
        "LSTM(n, 96, proj_size=32, bidirectional=True)",
        "GRU(n, 96, 2, bidirectional=True)",
        "RNN(n, 96, bias=False)",
        "RNN(n, 96, nonlinearity='relu')",
    ],
)
def test_a_recurrent_layer_is_one_operation(layer):
    problem = model(
        f"self.rnn = torch.nn.{layer}", "return self.rnn(x)[0]", "[torch.rand(64, 8, N)]", sizes="N = 512"
    )
    facts = check_against_forward(problem)
    names = [node.op for node in facts.full.graph.nodes if node.op.endswith(".input")]
    assert len(names) == 1
    assert (facts.workload_class, facts.parts) == (WorkloadClass.FUSED, (WorkloadClass.MATMUL,))
    assert facts.warnings == ()


def test_dropout_between_recurrent_layers_draws_random_numbers():
    layer = "self.rnn = torch.nn.GRU(n, 96, 2, dropout=0.5)"
    problem = model(layer, "return self.rnn(x)[0]", "[torch.rand(64, 8, N)]", sizes="N = 512")
    assert "draws random numbers (aten.gru.input)" in trace_facts(problem).warnings[0]
