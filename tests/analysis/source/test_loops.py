"""Loops of a kernel's source: strides over the grid, unrolled loads, groups of copies under way."""

from __future__ import annotations

import textwrap

import pytest

from cutegen_nb.analysis.source.loops import LoopFacts, loop_facts


def facts(body: str, head: str = "") -> LoopFacts | None:
    text = textwrap.indent(textwrap.dedent(body), "    ")
    return loop_facts(f"{head}\n@cute.kernel\ndef kernel(mX, mY):\n{text}\n")


@pytest.mark.parametrize(
    ("body", "walks"),
    [
        ("b, _, _ = cute.arch.block_idx()\nfor i in range(b, 4096, 132):\n    f(i)", True),
        ("b, _, _ = cute.arch.block_idx()\nat = b * 8\nfor i in range(at, 4096, 132):\n    f(i)", True),
        # The end depends on the CTA too: a tile of its own.
        ("b, _, _ = cute.arch.block_idx()\nat = b * 8\nfor i in range(at, at + 8, 1):\n    f(i)", False),
        ("for i in range(0, 4096, 132):\n    f(i)", False),
        ("b, _, _ = cute.arch.block_idx()\nfor i in range(b, 4096):\n    f(i)", False),
        ("n = cute.arch.grid_dim()", True),
    ],
)
def test_a_loop_walks_the_grid_where_it_starts_at_the_cta_and_ends_with_the_work(body, walks):
    assert facts(body).grid_stride is walks


@pytest.mark.parametrize(
    ("body", "turns"),
    [
        ("for i in cutlass.range_constexpr(4):\n    a = mX[i]", 4),
        ("for i in cutlass.range_constexpr(VALUES * 2):\n    cute.autovec_copy(mX, i)", 16),
        ("for i in cutlass.range_constexpr(n):\n    a = mX[i]", 2),
        ("for i in cutlass.range(64, unroll=8):\n    a = mX[i]", 8),
        ("for i in cutlass.range(64):\n    a = mX[i]", 1),
        # What does not change from turn to turn is loaded once, and arithmetic loads nothing.
        ("for i in cutlass.range_constexpr(4):\n    a = mX[j]", 1),
        ("for i in cutlass.range_constexpr(4):\n    a = b * i", 1),
        ("for i in cutlass.range_constexpr(4):\n    at = i + 1\n    a = mX[at]", 4),
        ("for i in cutlass.range_constexpr(4):\n    mX[i] = 0", 1),
    ],
)
def test_unrolled_turns_count_where_they_load_something_new(body, turns):
    assert facts(body, head="VALUES = 8").unrolled_loads == turns


def test_groups_left_under_way_are_read_from_the_waits():
    assert facts("cute.arch.cp_async_wait_group(0)").groups_in_flight == 0
    waits = "cute.arch.cp_async_wait_group(STAGES - 2)\ncute.arch.cp_async_wait_group(0)"
    assert facts(waits, head="STAGES = 4").groups_in_flight == 2


def test_only_kernels_are_read_and_text_that_does_not_parse_tells_nothing():
    assert loop_facts("def host(b):\n    for i in range(b, 9, 1):\n        x = mX[i]\n") == LoopFacts()
    assert loop_facts("def broken(:") is None
