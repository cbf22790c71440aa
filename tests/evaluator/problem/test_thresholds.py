"""Integers of a source that sizes are compared with."""

from __future__ import annotations

from cutegen_nb.evaluator.problem.thresholds import Threshold, thresholds


def test_thresholds_are_integers_that_sizes_are_compared_with():
    source = """
LIMIT = 1 << 20
from cutlass import cute

@cute.kernel
def kernel(x, n):
    if thread < 256:
        pass
    if n > 70000:
        pass

def forward(x):
    if x.numel() > LIMIT or x.shape[0] == 8 or 4 * 128 <= x.shape[1] or x.numel() // (2**16 + 1):
        return 1
"""
    assert [(item.value, item.words) for item in thresholds(source)] == [
        (1 << 20, "1048576 (LIMIT on line 13)"),
        (70_000, "70000 (line 9)"),
        (65_537, "65537 (2 ** 16 + 1 on line 13)"),
        (512, "512 (4 * 128 on line 13)"),
    ]


def test_constants_alone_decide_nothing_by_size():
    source = "THREADS = 256\nWARPS = THREADS // 32\nWIDE = THREADS > 128\nif x.numel() // 64 > 3: pass\n"
    assert [item.value for item in thresholds(source)] == [64]


def test_what_a_minimum_caps_may_count_ctas():
    source = "THREADS = 128\n\ndef host(n):\n    launch(grid=(min(n // THREADS, 65535), 1, 1))\n"
    assert [(item.value, item.is_product) for item in thresholds(source)] == [
        (65535 * 128, True),
        (65535, False),
        (128, False),
    ]
    assert thresholds(source)[0].words == "8388480 (65535 * THREADS on line 4, a minimum times a constant)"
    assert thresholds(f"{source}\ndef kernel():\n    step, _, _ = cute.arch.grid_dim()\n") == (
        Threshold(value=128, expression="THREADS", line=4),
    )


def test_a_function_that_only_kernels_call_is_a_part_of_them():
    source = """
def lane(thread):
    return warp(thread // 64)

def warp(thread):
    return thread // 32

def tile(n):
    return 128 if n >= 512 else 64

@cute.kernel
def kernel(x, n):
    self.lane(x)
    tile(n)

def forward(x):
    tile(x.shape[0])
"""
    assert [item.value for item in thresholds(source)] == [512]
    elsewhere = ("LANES = lane(1)\n", "CHOICES = {'narrow': lane}\n")
    assert [[item.value for item in thresholds(source + more)] for more in elsewhere] == [[512, 64, 32]] * 2


def test_an_equality_is_no_limit_beyond_which_sizes_lie():
    (found,) = thresholds("def forward(x):\n    if x.shape[0] == 128: pass\n")
    assert found.is_equality
    (both,) = thresholds("def forward(x):\n    if x.shape[0] == 128 or x.shape[1] >= 128: pass\n")
    assert not both.is_equality
