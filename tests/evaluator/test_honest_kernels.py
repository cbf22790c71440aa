"""Honest kernels that were once refused or accused: each passes tier B, with no flag but those named."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.evaluation import CheckState, Tier
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics import tolerance as correctness
from cutegen_nb.evaluator.probes.probe import expected_for
from cutegen_nb.evaluator.timing.timed_outputs import change
from cutegen_nb.evaluator.trial import compare as comparing
from cutegen_nb.evaluator.trial import conditioning as second_looks
from cutegen_nb.evaluator.trial.conditioning import compare_outputs, ill_defined

pytestmark = pytest.mark.slow
PROBLEM = """
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x{more}):
        return {answer}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
KERNEL = """
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

COMPILED = {{}}


@cute.kernel
def work_kernel(x: cute.Tensor, b: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, width: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + thread
    if i < count:
        v = x[i]
{body}


@cute.jit
def work(x: cute.Tensor, b: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, width: cutlass.Int32):
    work_kernel(x, b, y, count, width).launch(grid=(cute.ceil_div(count, 128), 1, 1), block=(128, 1, 1))


def launch(x, b, y):
    given = [from_dlpack(t.reshape(-1)).mark_layout_dynamic() for t in (x, b, y)]
    numbers = (x.numel(), (b if b.dim() == 1 else x).shape[-1])
    if work not in COMPILED:
        COMPILED[work] = cute.compile(work, *given, *numbers)
    COMPILED[work](*given, *numbers)


class ModelNew(torch.nn.Module):
    def forward(self, x, *more):
        x = x.contiguous()
        b = more[0].contiguous() if more else x
{forward}
"""
MAGIC = "((v + 12582912.0) - 12582912.0).to(cutlass.Int8)"
"""To the nearest integer."""
RANKS = """row = i // width * width
rank = cutlass.Int32(0)
for k in cutlass.range(width):
    o = x[row + k]
    if o < v or (o == v and row + k > i):
        rank += 1
y[row + rank] = cutlass.Int64(i - row)"""
CASES = {
    "a rounding that lies on the edge": (
        "torch.clamp(torch.round(x / b), -128, 127).to(torch.int8)",
        "torch.randn(96, 250), torch.rand(96, 1) * 0.02 + 0.01",
        f"v = cute.arch.fmax(cute.arch.fmin(v * (1.0 / b[i // width]), 127.0), -128.0); y[i] = {MAGIC}",
        "y = torch.empty(x.shape, dtype=torch.int8, device=x.device); launch(x, b, y); return y",
        {"wrong-under-stress"},
    ),
    "booleans": (
        "x > 0.5",
        "torch.randn(40, 61)",
        "r = cutlass.Uint8(0)\nif v > 0.5:\n    r = cutlass.Uint8(1)\ny[i] = r",
        "y = torch.empty(x.shape, dtype=torch.bool, device=x.device); launch(x, b, y.view(torch.uint8)); return y",
        set(),
    ),
    "an exponential less one": (
        "F.elu(x)",
        "torch.rand(40, 61) - 0.5",
        "r = v\nif v < 0.0:\n    r = cute.math.exp(v, fastmath=True) - 1.0\ny[i] = r",
        "y = torch.empty_like(x); launch(x, b, y); return y",
        {"wrong-under-stress"},  # numbers below the smallest normal one become zero
    ),
    "a search in edges that stay sorted": (
        "torch.bucketize(x, b)",
        "torch.randn(40, 61), torch.sort(torch.randn(33))[0]",
        "n = cutlass.Int64(0)\nfor k in cutlass.range(width):\n    if b[k] < v:\n        n += 1\ny[i] = n",
        "y = torch.empty(x.shape, dtype=torch.int64, device=x.device); launch(x, b, y); return y",
        set(),
    ),
    "float64 answers too large to square": (
        "torch.exp(x) - 1",
        "torch.randn(40, 61, dtype=torch.float64)",
        "y[i] = cute.math.exp(v) - 1.0",
        "y = torch.empty_like(x); launch(x, b, y); return y",
        set(),
    ),
    "an output that is an input": (
        '{"square": x * x, "same": x}',
        "torch.randn(40, 61)",
        "y[i] = v * v",
        'y = torch.empty_like(x); launch(x, b, y); return {"square": y, "same": x}',
        set(),
    ),
    "the places in sorted half-precision rows, equal ones in any order": (
        "torch.sort(x, dim=1)[1]",
        "torch.randn(30, 60).half()",
        RANKS,
        "y = torch.empty(x.shape, dtype=torch.int64, device=x.device); launch(x, b, y); return y",
        set(),
    ),
}


def problem(answer, inputs):
    return PROBLEM.format(answer=answer, inputs=inputs, more=", b" if "), torch" in inputs else "")


def kernel(body, forward):
    return KERNEL.format(
        body="\n".join(f"        {line}" for line in body.splitlines()),
        forward="\n".join(f"        {line}" for line in forward.split("; ")),
    )


class Places(torch.nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=1)[1]


class Sum(torch.nn.Module):
    def forward(self, x):
        return x.sum()


def reversed_sort(x, *, dim, stable):
    """Sorted, the last of equal elements first."""
    values, places = torch.sort(x.flip(dim), dim=dim, stable=stable)
    return values, x.shape[dim] - 1 - places


def look(reference, drawn, found, want, gate=None, *, longest_sum=1.0):  # noqa: PLR0913 - a comparison
    """Comparison of one output."""
    truth, _ = comparing.oracle(reference, drawn, [want])
    gates = [gate or correctness.find_tolerance(want, truth[0], 1.0)]
    return compare_outputs(
        reference=reference,
        drawn=drawn,
        leaves=[found],
        wanted=[want],
        truth=truth,
        gates=gates,
        longest_sum=longest_sum,
    )


@pytest.mark.long
@pytest.mark.first(2)
@pytest.mark.parametrize("name", CASES)
def test_it_passes_tier_b_with_no_other_flag(judge, name):
    answer, inputs, body, forward, flags = CASES[name]
    evaluation = judge(problem(answer, inputs), kernel(body, forward), Tier.B)
    assert evaluation.passed, evaluation.summary
    assert {item.kind for item in evaluation.findings} <= flags, evaluation.findings


@pytest.mark.long
def test_many_calls_run_where_the_answer_hangs_on_the_last_bits_of_its_inputs(judge):
    """A bfloat16 softmax moves by more than its gate with the last bit of an input; its own inputs serve."""
    body = (
        "row = i // width * width\nm = cutlass.Float32(-1e30)\nfor k in cutlass.range(width):\n"
        "    m = cute.arch.fmax(m, x[row + k].to(cutlass.Float32))\ns = cutlass.Float32(0.0)\n"
        "for k in cutlass.range(width):\n    s += cute.math.exp(x[row + k].to(cutlass.Float32) - m)\n"
        "y[i] = (cute.math.exp(v.to(cutlass.Float32) - m) / s).to(cutlass.BFloat16)"
    )
    given = problem("torch.softmax(x, dim=1)", "torch.randn(12, 50).bfloat16()")
    evaluation = judge(given, kernel(body, "y = torch.empty_like(x); launch(x, b, y); return y"), Tier.B)
    assert evaluation.passed, evaluation.summary
    many = next(item for item in evaluation.checks if item.name == "many calls")
    assert many.state is CheckState.RAN, many


@pytest.mark.long
def test_checks_of_empty_outputs_say_so(judge):
    given = problem("x * x", "torch.randn(0, 61)")
    forward = "y = torch.empty_like(x); launch(x, b, y) if x.numel() else None; return y"
    evaluation = judge(given, kernel("y[i] = v * v", forward), Tier.B)
    assert evaluation.passed, evaluation.summary
    notes = {item.name: item.note for item in evaluation.checks if item.state is CheckState.NOT_RUN}
    assert notes["a kernel was launched in every call"] == "the outputs have no elements"
    assert notes["shared memory ordered by barriers"] == "no kernel was launched"
    assert notes["stress inputs"] == "no input may take other values"


def test_a_reference_that_answers_at_random_is_the_problems_fault(judge):
    given = problem("F.dropout(x, 0.5)", "torch.randn(40, 61)")
    with pytest.raises(ProblemError, match="other results at each call on equal inputs"):
        judge(given, kernel("y[i] = v", "y = torch.empty_like(x); launch(x, b, y); return y"))


@pytest.mark.long
def test_a_kernel_written_for_the_full_size_is_told_that_a_smaller_one_was_judged(judge):
    source = kernel("y[i] = v * v", "y = torch.empty_like(x); launch(x, b, y); return y")
    fixed = source.replace("x.numel()", "4096 * 4096")
    evaluation = judge(problem("x * x", "torch.randn(4096, 4096)"), fixed)
    assert evaluation.label == "OUT_OF_BOUNDS"
    (hint,) = [item for item in evaluation.findings if item.kind == "names-the-full-size"]
    assert "its 4096 as" in hint.message
    assert fixed.splitlines()[hint.line - 1].count("4096") == 2
    honest = judge(problem("x * x", "torch.randn(4096, 4096)"), source.replace("v * v", "v"))
    assert [item.kind for item in honest.findings] == ["wrong-values"]


def test_only_last_bits_are_excused(judge):
    """One in a hundred integers off by one, away from any edge, is wrong."""
    answer, inputs, body, forward, _ = CASES["a rounding that lies on the edge"]
    wrong = body.replace("y[i] =", "if i % 100 == 7:\n    v = v - 1.0\ny[i] =")
    evaluation = judge(problem(answer, inputs), kernel(wrong, forward))
    assert not evaluation.passed


@pytest.mark.parametrize("order", [torch.sort, reversed_sort], ids=["first", "last"])
def test_any_order_of_equal_elements_is_as_good(order):
    """The places in 300 sorted half-precision numbers a row, a fiftieth of which have equals."""
    x = torch.randn(64, 300).half()
    reference = Places()
    want = reference(x)
    found = order(x, dim=1, stable=True)[1]
    looked = look(reference, [x], found, want)
    assert all(item.matches for item in looked.outputs), looked


def test_a_place_where_no_equal_element_is_stays_wrong():
    x = torch.randn(64, 300).half()
    reference = Places()
    want = reference(x)
    found = want.clone()
    found[::7, 100] = (found[::7, 100] + 150) % 300
    assert not look(reference, [x], found, want).outputs[0].matches


def test_a_sum_that_comes_out_near_zero_may_lose_what_its_terms_lose():
    x = torch.randn(20_000)
    x -= x.double().mean().float()
    x[0] += 0.01 - x.double().sum().float()
    reference = Sum()
    want = reference(x)
    found = want + 3e-6
    looked = look(reference, [x], found, want, Tolerance(element=3e-5, l2=3e-5, reference_l2=1e-7))
    assert looked.outputs[0].matches
    assert "last bits" in looked.note
    wrong = look(reference, [x], want + 1e-2, want, Tolerance(element=3e-5, l2=3e-5, reference_l2=1e-7))
    assert not wrong.outputs[0].matches


def test_few_elements_are_changed_only_where_that_breaks_nothing():
    matrix = torch.randn(8, 8)
    given = [matrix + matrix.T, torch.sort(torch.randn(33))[0], torch.randperm(20), torch.randn(50)]
    fresh = [item.flip(0).contiguous() for item in given]
    before = [item.clone() for item in given]
    assert change(given, fresh, few=True).startswith("a few elements")
    assert [torch.equal(*pair) for pair in zip(given, before, strict=True)] == [True, True, True, False]
    assert change(given[:3], fresh[:3], few=True).startswith("new contents")
    assert torch.equal(given[0], fresh[0])


class Scattered(torch.nn.Module):
    def forward(self, x, places):
        return torch.zeros(10, x.shape[1]).index_add(0, places, x)


def test_a_reference_that_makes_tensors_of_its_own_has_an_oracle():
    drawn = [torch.randn(30, 16), torch.randint(0, 10, (30,))]
    truth, reason = comparing.oracle(Scattered(), drawn, [Scattered()(*drawn)])
    assert not reason
    assert truth[0].dtype is torch.float64
    assert torch.get_default_dtype() is torch.float32


class Quantised(torch.nn.Module):
    def forward(self, x, scale):
        return torch.round(x / scale).to(torch.int32)


@pytest.mark.long
def test_a_few_roundings_on_the_edge_among_many_are_found():
    """A product with the inverse rounds a handful of millions of quotients the other way."""
    torch.manual_seed(0)
    x, scale = torch.randn(4096, 1024), torch.rand(4096, 1) * 0.02 + 0.01
    turned = (Quantised()(x, scale) != torch.round(x * (1 / scale)).to(torch.int32)).any(dim=1)
    rows = torch.cat([turned.nonzero().view(-1)[:3], torch.arange(256)])
    x, scale = x[rows], scale[rows]
    want, found = Quantised()(x, scale), torch.round(x * (1 / scale)).to(torch.int32)
    assert 0 < int((want != found).sum()) < 20
    looked = look(Quantised(), [x, scale], found, want)
    assert looked.outputs[0].matches
    found[5, 5] += 1
    assert not look(Quantised(), [x, scale], found, want).outputs[0].matches


def test_a_norm_of_equal_numbers_says_nothing():
    """What is left is the rounding error of a mean of 4096 equal terms, divided by the root of epsilon."""
    x = torch.full((8, 4096), 0.7)
    assert expected_for(torch.nn.LayerNorm(4096), [x], 4096.0) == (
        "the reference's answer changes with the last bits of these inputs"
    )
    assert not isinstance(expected_for(torch.nn.Softmax(dim=1), [x], 4096.0), str)


def test_floats_made_64_bit_integers_can_be_judged():
    class Whole(torch.nn.Module):
        def forward(self, x):
            return (x * 10).long()

    inside, beyond = torch.arange(64.0) + 0.25, torch.full((64,), 1e30)
    assert not ill_defined(Whole(), [inside], [Whole()(inside)])
    assert ill_defined(Whole(), [beyond], [Whole()(beyond)])


class Router(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(1024, 16, bias=False)

    def forward(self, x):
        return torch.topk(self.gate(x), 2).indices


@pytest.mark.long
def test_choices_that_turn_with_the_order_of_additions_pass():
    """Sums of 1024 terms, one term after another: a few near scores come in another order."""
    torch.manual_seed(0)
    router, x = Router().requires_grad_(requires_grad=False), torch.randn(1 << 11, 1024)
    between = router.gate.weight[0] - router.gate.weight[1]
    x -= (x @ between / between.dot(between))[:, None] * between  # two scores of each row are nearly equal
    x[:1000] += 5e-7 * torch.randn(1000, 1) * between
    x[1000:] += between
    want, sums = router(x), torch.zeros(1 << 11, 16)
    for column, weight in zip(x.T, router.gate.weight.T, strict=True):
        sums += column[:, None] * weight
    serial = torch.topk(sums, 2).indices
    assert 0 < int((serial != want).sum()) < 200
    assert not look(router, [x], serial, want).outputs[0].matches, "more than last bits of the inputs"
    assert look(router, [x], serial, want, longest_sum=2048.0).outputs[0].matches
    coarse = torch.topk(x.bfloat16().float() @ router.gate.weight.T, 2).indices
    assert not look(router, [x], coarse, want, longest_sum=2048.0).outputs[0].matches


class Second(torch.nn.Module):
    def forward(self, x):
        return torch.topk(torch.softmax(x, dim=-1), 2).indices


def test_the_order_of_equal_elements_says_nothing():
    """A row of zeros, as the judge makes them: each expert of a router has the same probability."""
    x = torch.randn(64, 16)
    assert not ill_defined(Second(), [x], [Second()(x)])
    x[4] = 0.0
    assert ill_defined(Second(), [x], [Second()(x)])
    order = torch.nn.Module()
    order.forward = torch.argsort
    assert ill_defined(order, [x], [order(x)])
    assert not ill_defined(order, [x[:4]], [order(x[:4])])
    first = torch.nn.Module()
    first.forward = lambda x: x.argmax(dim=-1)  # the first, by definition
    assert not ill_defined(first, [x.clamp(min=0.0) + x[4]], [first(x.clamp(min=0.0) + x[4])])


def test_the_order_of_numbers_below_the_normal_range_says_nothing():
    """A GPU's exponential may flush them: a router's second choice among far probabilities is no one's fault."""
    near = torch.arange(8.0).flip(0).repeat(4, 1)
    far = torch.where(near == 7.0, 95.0, near)  # exp(6 - 95) is 2e-39
    assert not ill_defined(Second(), [near], [Second()(near)])
    assert ill_defined(Second(), [far], [Second()(far)])


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def test_an_answer_with_infinities_excuses_no_garbage():
    x = torch.randn(64, 64)
    x[0] = -torch.inf
    want = Doubled()(x)
    one = want.clone()
    one[5, 2] += 3.0
    assert not look(Doubled(), [x], one, want).outputs[0].matches
    assert not look(Doubled(), [x], want + 3.0, want).outputs[0].matches


def test_few_answers_are_made_where_outputs_are_large(monkeypatch):
    class Spread(torch.nn.Module):
        def forward(self, x):
            made.append(1)
            return x.expand(512, 64) * 2.0

    made, x = [], torch.randn(1, 64)
    monkeypatch.setattr(second_looks, "_MANY_ELEMENTS", 1 << 10)
    want = Spread()(x)
    look(Spread(), [x], want + 1.0, want)
    assert len(made) < second_looks._DRAWS


TINY = 1e-30


class Edges(torch.nn.Module):
    """Few elements that any rounding may turn, and many that none does."""

    def forward(self, x):
        return torch.where(x.abs() < TINY, torch.sign(x), x + 10.0)


def test_an_excuse_for_few_elements_is_none_for_the_rest():
    """Every element is off by most of what one alone may be, which the gate on the whole forbids."""
    x = torch.randn(64, 64)
    x[:2] = 0.0
    want = Edges()(x)
    gate = Tolerance(element=1e-4, l2=1e-5, reference_l2=1e-7, against_oracle=False)
    turned = want.clone()
    turned[0] = torch.tensor([1.0, -1.0]).repeat(32)
    assert look(Edges(), [x], turned, want, gate).outputs[0].matches
    shifted = torch.where(x == 0, turned, turned * (1 + 1.5e-4))
    assert not look(Edges(), [x], shifted, want, gate).outputs[0].matches


class Product(torch.nn.Module):
    def forward(self, x):
        return x @ x.T


def test_an_exact_answer_is_excused_no_last_bit():
    x = torch.randint(-4, 5, (512, 8)).float()
    want = Product()(x)
    found = want * (1 + 2.0**-20)
    exact = Tolerance(element=0.0, l2=0.0, reference_l2=0.0)
    assert not look(Product(), [x], found, want, exact).outputs[0].matches
