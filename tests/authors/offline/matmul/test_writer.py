"""The offline author's matrix products: what is planned, and what the written files compute."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from cutegen_nb.authors.offline.matmul.writer import MatmulWriter
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.profile import Counters
from cutegen_nb.evaluator.problem.trace import trace_facts

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]

TEMPLATE = """
import torch
import torch.nn as nn

{sizes}

class Model(nn.Module):
    def __init__(self{init_args}):
        super().__init__()
        {init}

    def forward(self, {args}):
        return {value}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{init_values}]
"""


def problem(value, sizes, args, **init):
    """A problem in KernelBench's form; `args` maps forward's arguments to how they are drawn."""
    parts = {"init": "pass", "init_args": "", "init_values": "", **init}
    source = TEMPLATE.format(
        value=value, sizes=sizes, args=", ".join(args), inputs=", ".join(args.values()), **parts
    )
    return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH)


SQUARE = "M, N, K = 160, 96, 72"
AB = {"A": "torch.rand(M, K)", "B": "torch.rand(K, N)"}
LINEAR = {"init": "self.gemm = nn.Linear(k, n)", "init_args": ", k, n", "init_values": "K, N"}

PROBLEMS = {
    "plain": problem("A @ B", SQUARE, AB),
    "cube": problem("A @ B", "M = N = K = 128", AB),
    "odd": problem("torch.matmul(A, B)", "M, N, K = 67, 131, 29", AB),
    "both transposed": problem("A.T @ B.T", SQUARE, {"A": "torch.rand(K, M)", "B": "torch.rand(N, K)"}),
    "first transposed": problem("A.T @ B", SQUARE, {"A": "torch.rand(K, M)", "B": "torch.rand(K, N)"}),
    "second transposed": problem("A @ B.T", SQUARE, {"A": "torch.rand(M, K)", "B": "torch.rand(N, K)"}),
    "result transposed": problem("(A @ B).T.relu()", SQUARE, AB),
    "batched": problem("torch.bmm(A, B)", "L, M, N, K = 3, 70, 40, 33",
                       {"A": "torch.rand(L, M, K)", "B": "torch.rand(L, K, N)"}),
    "heads": problem("A @ B.transpose(-2, -1) * 0.5", "B1, H, M, N, K = 2, 3, 33, 20, 16",
                     {"A": "torch.rand(B1, H, M, K)", "B": "torch.rand(B1, H, N, K)"}),
    "four-dimensional": problem("torch.einsum('bijl,lk->bijk', A, B)", "b, i, j, l, k = 2, 3, 20, 24, 40",
                                {"A": "torch.rand(b, i, j, l)", "B": "torch.rand(l, k)"}),
    "column": problem("A @ x", "M, K = 50, 8192", {"A": "torch.rand(M, K)", "x": "torch.rand(K, 1)"}),
    "odd column": problem("A @ x", "M, K = 50, 1001", {"A": "torch.rand(M, K)", "x": "torch.rand(K, 1)"}),
    "triangle": problem("torch.triu(A @ B, 1)", "M = N = 150\nK = 40", AB),
    "linear": problem("torch.nn.functional.gelu(self.gemm(x)) * 2", SQUARE, {"x": "torch.rand(M, K)"}, **LINEAR),
    "residual": problem("torch.sigmoid(self.gemm(x) + r) + r", "B1, M, N, K = 2, 40, 48, 36",
                        {"x": "torch.rand(B1, M, K)", "r": "torch.rand(B1, M, N)"}, **LINEAR),
    "half": problem("self.gemm(x).relu()", SQUARE, {"x": "torch.rand(M, K).half()"},
                    **{**LINEAR, "init": "self.gemm = nn.Linear(k, n).half()"}),
    "bfloat16": problem("A @ B", "M, N, K = 40, 50, 70",
                        {"A": "torch.rand(M, K).bfloat16()", "B": "torch.rand(K, N).bfloat16()"}),
    "deep": problem("A @ B + 1", "M, N, K = 40, 24, 1024", AB),
    "half odd": problem("A @ B", "M, N, K = 65, 67, 131",
                        {"A": "torch.rand(M, K).half()", "B": "torch.rand(K, N).half()"}),
    "half first transposed": problem("A.T @ B.T", "M, N, K = 132, 68, 70",
                                     {"A": "torch.rand(K, M).half()", "B": "torch.rand(N, K).half()"}),
    "half cube": problem("A @ B", "M = N = K = 128",
                         {"A": "torch.rand(M, K).half()", "B": "torch.rand(K, N).half()"}),
    "half batched": problem("torch.bmm(A, B)", "L, M, N, K = 3, 70, 40, 33",
                            {"A": "torch.rand(L, M, K).half()", "B": "torch.rand(L, K, N).half()"}),
    "half deep": problem("A @ B + 1", "M, N, K = 40, 24, 1024",
                         {"A": "torch.rand(M, K).half()", "B": "torch.rand(K, N).half()"}),
    "signs": problem("A @ B", "M, N, K = 64, 72, 512", {"A": "torch.randn(M, K)", "B": "torch.randn(K, N)"}),
    "narrow tail": problem("A @ B", "M, N, K = 40, 24, 64",
                           {"A": "torch.randn(M, K)", "B": "torch.randn(K, N)"}),
    "not finite": problem("A @ B", "M, N, K = 48, 40, 70\ninf = float('inf')",
                          {"A": "torch.diagonal_scatter(torch.rand(M, K), torch.tensor([inf, -inf, 3.4e38] * 16))",
                           "B": "torch.rand(K, N) * torch.logspace(-9, 0, N)"}),
    "half few rows": problem("torch.relu(A @ B.T + b)", "M, N, K = 13, 1030, 520",
                             {"A": "torch.rand(M, K).half()", "B": "torch.rand(N, K).half()", "b": "torch.rand(N).half()"}),
    "few rows not finite": problem("B @ A.T", "M, N, K = 5, 1027, 515\ninf = float('inf')",
                                   {"A": "torch.rand(M, K)",
                                    "B": "torch.diagonal_scatter(torch.rand(N, K), torch.tensor([inf, -inf, 3e38, 1, 2] * 103))"}),
    "few columns": problem("A @ B", "M, N, K = 70, 5, 40", AB),
}  # fmt: skip

PROGRAM = """
import dataclasses, importlib.util, json, os, sys
sys.path.insert(0, sys.argv[1])
from cutegen_nb.simulator.host import simulation as host
os.environ.update(host.prepare_environment("sm_80"))
simulation = host.install("sm_80")
import torch
torch.set_num_threads(1)

def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

for line in sys.stdin:
    reference_path, candidate_path = json.loads(line)
    reference = load(reference_path)
    torch.manual_seed(1)
    model = reference.Model(*reference.get_init_inputs())
    inputs = reference.get_inputs()
    simulation.reset()
    with torch.no_grad(), simulation.present_as_cuda():
        torch.manual_seed(1)
        candidate = load(candidate_path).ModelNew(*reference.get_init_inputs())
        candidate.load_state_dict(model.state_dict())
        got = candidate.cuda()(*[x.cuda() for x in inputs]).cpu()
    launches = [dataclasses.asdict(launch.counters) for launch in simulation.launches]
    findings = [finding.message for finding in simulation.findings]
    with torch.no_grad():
        want = model(*inputs)
        exact = model.double()(*[x.double() for x in inputs])
    answer = {
        "shape": got.shape == want.shape, "dtype": got.dtype == want.dtype,
        "error": ((got.double() - exact)[exact.isfinite()].abs().max() / exact[exact.isfinite()].abs().max()).item(),
        "like": torch.allclose(got, want, rtol=1e-2, equal_nan=True),
        "launches": launches, "findings": findings,
    }
    print("RESULT" + json.dumps(answer), flush=True)
"""


@cache
def facts_of(name):
    return trace_facts(PROBLEMS[name])


SAMPLE = ("linear", "half cube")
"""Computed in ``make test``."""
LONG = ("odd", "column", "triangle", "deep", "half few rows")
"""Computed in ``make test-long``, as is every sixth of all."""
SWEPT = (pytest.mark.long, pytest.mark.every(long=6))
SAMPLED = [
    pytest.param(name, marks=() if name in SAMPLE else pytest.mark.long if name in LONG else SWEPT)
    for name in PROBLEMS
]

WHOLE_LADDER = ("linear", "column")
"""Problems run after every step."""
LAST_STEP = ("triangle", "deep")
"""Problems with a last step of their own, run before and after it; the others after the first and the last."""


def steps_of(name):
    last = len(ladder(name))
    if name in WHOLE_LADDER:
        return range(last + 1)
    return (last - 1, last) if name in LAST_STEP else (0, last)


@cache
def simulated_menu(name):
    """Strategies for the architecture that the simulator compiles for."""
    menu = MatmulWriter().menu(facts_of(name))
    return [item for item in menu if not item.architectures or "sm_80" in item.architectures]


def ladder(name):
    return [strategy.name for strategy in simulated_menu(name)]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Function from a problem and a number of steps to what the kernel did; one process runs all kernels."""
    folder = tmp_path_factory.mktemp("products")
    errors = folder / "errors"
    with errors.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, str(ROOT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    @cache
    def ran(name, steps):
        stem = f"{name}_{steps}".replace(" ", "_").replace("-", "_")
        reference, candidate = folder / f"reference_{stem}.py", folder / f"candidate_{stem}.py"
        reference.write_text(PROBLEMS[name].source)
        strategies = tuple(ladder(name)[:steps])
        candidate.write_text(MatmulWriter().write(PROBLEMS[name], facts_of(name), strategies).source)
        process.stdin.write(json.dumps([str(reference), str(candidate)]) + "\n")
        process.stdin.flush()
        lines = iter(process.stdout.readline, "")
        answer = next((line for line in lines if line.startswith("RESULT")), None)
        assert answer, errors.read_text()[-4000:]
        return json.loads(answer.removeprefix("RESULT"))

    yield ran
    process.kill()  # to take torch and the DSL apart would take longer than most kernels
    process.wait()
    process.stdin.close()
    process.stdout.close()


def counters(simulated, name, steps):
    total = Counters()
    for launch in simulated(name, steps)["launches"]:
        total += Counters(**launch)
    return total


@pytest.mark.parametrize("name", SAMPLED)
def test_every_step_of_the_ladder_computes_the_product(simulated, name):
    tolerance = {"half": 2e-3, "bfloat16": 8e-3}.get(name.split()[0], 1e-5)
    for steps in steps_of(name):
        found = simulated(name, steps)
        assert found["shape"], (name, steps)
        assert found["dtype"], (name, steps)
        assert found["error"] < tolerance, (name, steps, found["error"])
        assert found["like"], (name, steps)
        assert not found["findings"], (name, steps, found["findings"])


@pytest.mark.parametrize(
    "name", ["linear", *(pytest.param(name, marks=pytest.mark.long) for name in ("column", "triangle"))]
)
def test_each_strategy_lowers_the_counters_it_names(simulated, name):
    for step, strategy in enumerate(simulated_menu(name), 1):
        if step - 1 not in steps_of(name):
            continue
        before, after = counters(simulated, name, step - 1), counters(simulated, name, step)
        for effect in strategy.effects:
            if effect.counter != "latency_ms":  # the simulator knows no time
                assert getattr(after, effect.counter) < getattr(before, effect.counter), (
                    strategy.name,
                    effect,
                )


@pytest.mark.long
def test_a_deep_product_of_few_tiles_is_split_and_summed_in_a_second_kernel(simulated):
    assert ladder("deep") == ["shared-memory-tiles", "tensor-cores", "multistage-copies", "split-k"]
    assert len(simulated("deep", 4)["launches"]) == 2
    assert len(simulated("deep", 3)["launches"]) == 1


@pytest.mark.long
def test_three_products_in_tf32_have_the_accuracy_of_fp32(simulated):
    # Of each factor at most 2⁻²³ is cut and low · low ≤ 2⁻²² |a b| is left out: 2⁻²¹ of each of 512 products,
    # of either sign, is √512 · 2⁻²¹ = 1.1e-5 in sums of up to 90. 12 MMAs and one addition for 32 values of k
    # round a sum 208 times: √208 · 2⁻²⁴ = 8.6e-7 of it. One product in TF32 would lose 3e-5 of the largest sum.
    error = simulated("signs", 3)["error"]
    assert error < 1e-6
    # The simulator gives 1.2e-7 here, half of what the sums of the first kernel lose.
    assert error < simulated("signs", 0)["error"]


@pytest.mark.parametrize("name", [pytest.param("cube", marks=pytest.mark.long), "half cube"])
def test_tensor_cores_read_and_write_shared_memory_without_bank_conflicts(simulated, name):
    found = counters(simulated, name, 3)
    assert found.smem_wavefronts == found.smem_ideal_wavefronts > 0
    # Four tiles of D, 64 × 64, read 64 rows of A and of B each, in sectors of 32 bytes.
    width = 2 if name.startswith("half") else 4
    assert found.gmem_load_sectors == 4 * 2 * 64 * 128 * width // 32
    products = 1 if name.startswith("half") else 3
    assert (
        sum(found.flops[kind] for kind in found.flops if kind.startswith("tensor")) == products * 2 * 128**3
    )


def test_the_step_to_tensor_cores_says_how_it_multiplies():
    single, half = (
        [item.statement for item in MatmulWriter().menu(facts_of(name))] for name in ("plain", "half")
    )
    assert "three TF32 products" in single[1]
    assert "accuracy of fp32" in single[1]
    assert "TF32" not in half[1]
    assert single[2] == half[2]


def test_a_product_narrower_than_an_mma_stays_on_cuda_cores():
    assert ladder("few columns") == [
        "shared-memory-tiles", "register-blocking", "copies-128-bit", "double-buffered-tiles",
    ]  # fmt: skip


def test_a_kernel_on_tensor_cores_stays_there():
    steps = ("shared-memory-tiles", "tensor-cores", "multistage-copies")
    before = MatmulWriter().write(PROBLEMS["plain"], facts_of("plain"), steps).source
    after = MatmulWriter().write(PROBLEMS["plain"], facts_of("plain"), (*steps, "register-blocking")).source
    assert after == before


@pytest.mark.every(test=4)
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_number_of_the_problem_is_written_into_the_file(name):
    names = ladder(name)
    full = MatmulWriter().write(PROBLEMS[name], facts_of(name), tuple(names)).source
    forward = full[full.index("def forward") :]
    for number in ("67", "131", "29", "160", "96", "72", "150", "1000", "1001", "1024"):
        assert number not in forward, forward


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("A @ B @ B.T", "more"),
        ("torch.softmax(A @ B, 1)", "after a matrix product"),
        ("torch.cumsum(A, 1) @ B", "before a matrix product"),
        ("A.relu() @ B", "computed by the reference"),
        ("(A @ B).sum(1)", "sum"),
    ],
)
def test_what_is_no_single_product_with_pointwise_work_is_declined_in_one_sentence(value, reason):
    facts = trace_facts(problem(value, SQUARE, AB))
    with pytest.raises(Declined, match=reason) as caught:
        MatmulWriter().menu(facts)
    assert "\n" not in str(caught.value)


def test_an_unknown_strategy_is_declined_and_the_known_ones_are_named():
    with pytest.raises(Declined, match="split-k"):
        MatmulWriter().write(PROBLEMS["plain"], facts_of("plain"), ("warp-specialise",))


def test_a_tensor_beyond_32_bit_offsets_is_declined():
    facts = trace_facts(problem("A @ B", "M, N, K = 65536, 65536, 64", AB))
    with pytest.raises(Declined, match="32 bits"):
        MatmulWriter().menu(facts)
