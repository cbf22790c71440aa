"""Parts of a kernel that a repair gave up, read from both texts and both launches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.source.simplification import features, simplified
from cutegen_nb.core.finding import Severity
from cutegen_nb.testing import examples

TILED = """
from cutlass import cute

@cute.kernel
def first(mA):
    smem = cutlass.utils.SmemAllocator()
    cute.autovec_copy(mA, mA)
    value = cute.arch.shuffle_sync_bfly(mA[0], offset=1)

@cute.kernel
def second(mA):
    cute.gemm(mA, mA)

@cute.jit
def launch(mA, n):
    first(mA).launch(grid=(n, 1, 1), block=(256, 1, 1))
    second(mA).launch(grid=(n, 1, 1), block=(256, 1, 1))
"""


def told(before: str, after: str, *ran) -> list[str]:
    return [item.message for item in simplified(before, after, *ran)]


def test_features_count_kernels_launches_and_constructs():
    found = features(TILED)
    assert (found.kernels, found.launches, found.one_cta) == (2, 2, False)
    assert found.constructs == {"shared memory", "vector copy", "warp shuffle", "mma"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    cute.gemm(mA, mA)\n", "    mA[0] = mA[0] * mA[0]\n", "no longer uses tiled products"),
        ("    smem = cutlass.utils.SmemAllocator()\n", "", "no longer uses shared memory"),
        (
            "    second(mA).launch(grid=(n, 1, 1), block=(256, 1, 1))\n",
            "",
            "launches in 1 places where there were 2",
        ),
        (
            "@cute.kernel\ndef second",
            "@cute.jit\ndef second",
            "has 1 @cute.kernel functions where there were 2",
        ),
        ("grid=(n, 1, 1)", "grid=(1, 1, 1)", "launches a single CTA"),
        (
            "    cute.gemm(mA, mA)\n",
            "    mA = torch.relu(torch.matmul(mA, mA))\n",
            "calls torch 2 times and cute 2 times, before 0 and 3",
        ),
    ],
)
def test_what_is_dropped_is_said(old, new, words):
    assert f"The repair {words}." in told(TILED, TILED.replace(old, new))


def test_a_product_that_leaves_the_tensor_cores_is_said():
    before = TILED.replace("cute.gemm(mA", "cute.gemm(cute.nvgpu.warp.MmaTF32Op(mA)")
    assert told(before, TILED) == ["The repair no longer uses tensor-core products."]


def test_a_repair_that_drops_nothing_is_not_flagged():
    assert told(TILED, TILED.replace("256", "128") + "\n# cured\n") == []
    assert told(TILED, "def (") == []


def test_fewer_ctas_and_threads_are_seen_where_both_ran():
    before, after = examples.passed(100), examples.passed(100)
    launch = after.profile.launches[0]
    few = replace(launch, grid=(4, 1, 1))
    after = replace(after, profile=replace(after.profile, launches=(few,)))
    assert told(TILED, TILED, before, after) == [
        "The repair launches 4 CTAs (1,024 threads) where there were 16 CTAs (4,096 threads)."
    ]
    larger = replace(launch, grid=(4, 1, 1), block=(1024, 1, 1))
    after = replace(after, profile=replace(after.profile, launches=(larger,)))
    assert told(TILED, TILED, before, after) == []


def test_every_fact_is_a_flag_and_decides_nothing():
    assert {item.severity for item in simplified(TILED, TILED.replace("(n, 1, 1)", "(1, 1, 1)"))} == {
        Severity.FLAG
    }
