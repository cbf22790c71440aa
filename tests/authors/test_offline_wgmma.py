"""The offline author's products by TMA and wgmma, on the simulator and where there is a Hopper GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.authors.offline.matmul.strategies import (
    MULTISTAGE,
    SKIP,
    SPLIT_IN_REGISTERS,
    THREE_PRODUCTS,
    TILES,
    WGMMA,
)
from cutegen_nb.authors.offline.matmul.writer import MatmulWriter
from cutegen_nb.evaluator.problem.trace import trace_facts
from tests.authors.offline.matmul.test_writer import AB, PROBLEMS, problem

HALF = {"A": "torch.randn(M, K).half()", "B": "torch.randn(K, N).half()"}
MARKED = "torch.randn(M, K).masked_fill(torch.rand(M, K) < 0.0005, float('{}'))"
PRODUCTS = {
    **{name: given for name, given in PROBLEMS.items() if "column" not in name},
    "long": problem("A @ B", "M, N, K = 300, 200, 4096", AB),
    "large": problem("A @ B", "M, N, K = 1536, 1280, 512", AB),
    "short": problem("A @ B", "M, N, K = 1536, 1280, 64", AB),
    "shorter": problem("A @ B", "M, N, K = 1536, 1280, 32", AB),
    "large half": problem("A @ B", "M, N, K = 2560, 2304, 512", HALF),
    "wide half": problem("A @ B", "M, N, K = 1400, 3072, 264", HALF),  # tiles of 256 columns, stored by TMA
    "wide odd half": problem("torch.nn.functional.gelu(A @ B)", "M, N, K = 1400, 3071, 264", HALF),
    "gelu half": problem("torch.nn.functional.gelu(A @ B)", "M, N, K = 100, 72, 264", HALF),
    "half to float": problem("(A @ B).float() * 0.5", "M, N, K = 140, 72, 264", HALF),
    "half result transposed": problem("(A @ B).T.relu()", "M, N, K = 140, 72, 264", HALF),
    "odd half": problem("A @ B", "M, N, K = 67, 131, 29", HALF),
    "both transposed half": problem("A.T @ B.T", "M, N, K = 160, 96, 72",
                                    {"A": "torch.randn(K, M).half()", "B": "torch.randn(N, K).half()"}),
    "batched half": problem("torch.bmm(A, B)", "L, M, N, K = 3, 72, 40, 64",
                            {"A": "torch.randn(L, M, K).half()", "B": "torch.randn(L, K, N).half()"}),
    "infinity": problem("A @ B", "M, N, K = 130, 70, 300",
                        {"A": MARKED.format("inf"), "B": "torch.randn(K, N)"}),
    "nan": problem("A @ B", "M, N, K = 130, 70, 300", {"A": MARKED.format("nan"), "B": "torch.randn(K, N)"}),
    "rows of all sizes": problem("A @ B", "M, N, K = 200, 100, 500",
                                 {"A": "torch.randn(M, K) * torch.logspace(-30, 30, M)[:, None]",
                                  "B": "torch.randn(K, N) * 1e-6"}),
}  # fmt: skip
LAYER = {"A": "torch.randn(M, K)", "B": "torch.randn(N, K)"}
FEW_ROWS = {
    "few rows": problem("torch.nn.functional.gelu(A @ B.T)", "M, N, K = 70, 8200, 256", LAYER),
    "few rows and an odd depth": problem("A @ B.T", "M, N, K = 130, 8200, 99", LAYER),
    "large first": problem("A @ B.T", "M, N, K = 8200, 50, 160", LAYER),
    "few columns as they lie": problem("A @ B", "M, N, K = 8200, 50, 160", AB),
    "batched few rows": problem("torch.bmm(A, B)", "L, M, N, K = 3, 72, 140, 100",
                                {"A": "torch.randn(L, M, K)", "B": "torch.randn(L, N, K).transpose(1, 2)"}),
    "few rows with infinity": problem(
        "A @ B.T", "M, N, K = 70, 130, 300",
        {"A": MARKED.format("nan"), "B": "torch.randn(N, K).masked_fill(torch.rand(N, K) < 0.0005, float('inf'))"},
    ),
    "few rows of all sizes": problem("A @ B.T", "M, N, K = 60, 200, 500",
                                     {"A": "torch.randn(M, K) * 1e-6",
                                      "B": "torch.randn(N, K) * torch.logspace(-30, 30, N)[:, None]"}),
}  # fmt: skip
"""Products whose large operand is split in registers."""
PRODUCTS |= FEW_ROWS
SIMULATED = ("both transposed half", "infinity", "few rows with infinity", "few columns as they lie")
"""Simulated in every run; the others by `make test-sweeps`."""
LARGEST_ERROR = {"float32": 2e-5, "float16": 1e-2, "bfloat16": 4e-2}
"""In units of the output's root mean square, by dtype.

float32's is that of sums of 64 terms, the largest output some 50 times the root mean square where rows differ in
size; that of one fp16 product instead of three would be above 1e-3.
"""


MULTIPROCESSORS = "torch.cuda.get_device_properties(mA.device).multi_processor_count"


def results(tmp_path: Path, names, ctas: str = MULTIPROCESSORS, **environment: str) -> dict[str, float | str]:
    """Write the kernels and let a child run them on at most `ctas` CTAs; by name, the error or a word."""
    stems = {}
    for name in names:
        facts = trace_facts(PRODUCTS[name])
        step = THREE_PRODUCTS if facts.dtype == "float32" else WGMMA
        steps = (step, SPLIT_IN_REGISTERS) if name in FEW_ROWS else (step,)
        stem = stems[name] = name.replace(" ", "_").replace("-", "_")
        (tmp_path / f"{stem}.problem.py").write_text(PRODUCTS[name].source)
        text = MatmulWriter().write(PRODUCTS[name], facts, steps).source
        (tmp_path / f"{stem}.kernel.py").write_text(text.replace(MULTIPROCESSORS, ctas))
    child = Path(__file__).with_name("wgmma_child.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(child), str(tmp_path)],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: found[stem] for name, stem in stems.items()}


@pytest.mark.long
@pytest.mark.slow
def test_products_are_right_and_clean_without_a_gpu(tmp_path):
    assert_right(results(tmp_path, SIMULATED, CUDA_VISIBLE_DEVICES=""))


@pytest.mark.long
@pytest.mark.slow
def test_one_cta_multiplies_several_tiles_one_after_another(tmp_path):
    assert_right(results(tmp_path, ("infinity", "batched", "triangle"), ctas="2", CUDA_VISIBLE_DEVICES=""))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.sweep
def test_the_other_products_are_right_and_clean_without_a_gpu(tmp_path):
    others = [name for name in PRODUCTS if name not in SIMULATED]
    assert_right(results(tmp_path, others, CUDA_VISIBLE_DEVICES=""))


@pytest.mark.gpu
def test_products_are_right_on_hopper(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs a GPU of compute capability 9.0")
    assert_right(results(tmp_path, PRODUCTS))


def assert_right(found: dict[str, float | str]) -> None:
    for name, error in found.items():
        assert isinstance(error, float), (name, error)
        assert error < LARGEST_ERROR[trace_facts(PRODUCTS[name]).dtype], (name, error)


def names_on(architecture: str, name: str) -> list[str]:
    """Strategies of a product's menu that fit an architecture."""
    menu = MatmulWriter().menu(trace_facts(PRODUCTS[name]))
    return [item.name for item in menu if not item.architectures or architecture in item.architectures]


def test_the_step_for_hopper_follows_the_dtype_and_needs_a_long_k():
    menu = MatmulWriter().menu(trace_facts(PRODUCTS["large"]))
    for_hopper = {item.name: item.dtypes for item in menu if item.architectures == ("sm_90",)}

    assert for_hopper == {THREE_PRODUCTS: ("float32",), WGMMA: ("float16", "bfloat16")}
    assert THREE_PRODUCTS not in names_on("sm_80", "large")
    assert THREE_PRODUCTS not in names_on("sm_90", "plain")
    assert (THREE_PRODUCTS in names_on("sm_90", "short"), THREE_PRODUCTS in names_on("sm_90", "shorter")) == (
        True,
        False,
    )


def test_later_steps_keep_the_kernel_for_hopper():
    facts = trace_facts(PRODUCTS["triangle"])
    one = MatmulWriter().write(PRODUCTS["triangle"], facts, (THREE_PRODUCTS,)).source
    same = MatmulWriter().write(PRODUCTS["triangle"], facts, (TILES, THREE_PRODUCTS, MULTISTAGE)).source
    less = MatmulWriter().write(PRODUCTS["triangle"], facts, (THREE_PRODUCTS, SKIP)).source

    assert "wgmma" in one
    assert same.partition('"""')[2] == one.partition('"""')[2]
    assert "needs no product" in less
    assert "needs no product" not in one
