from __future__ import annotations

import re
import sys
from pathlib import Path

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

from rows_assignment import A_ROW_A_THREAD, SOLUTIONS

from cutegen_nb.teaching.class_marks import ALIKE
from cutegen_nb.teaching.likeness import pairs, sequences

WARP_A_ROW = SOLUTIONS["rows/2"]
A_BLOCK_A_ROW = """import cutlass
import cutlass.cute as cute


@cute.kernel
def sum_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    part = smem.allocate_tensor(cutlass.Float32, cute.make_layout(128))
    mine = cutlass.Float32(0.0)
    for step in cutlass.range(x.shape[1] // 128):
        mine = mine + x[row, step * 128 + tidx]
    part[tidx] = mine
    cute.arch.sync_threads()
    if tidx == 0:
        whole = cutlass.Float32(0.0)
        for i in cutlass.range(128):
            whole = whole + part[i]
        out[row] = whole


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    sum_kernel(x, out).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))
"""


def renamed(source: str) -> str:
    """The same kernel in other words: names, numbers' layout, comments, docstring, order of functions."""
    for old, new in (
        ("tidx", "t"),
        ("bidx", "b"),
        ("lane", "l"),
        ("row", "r"),
        ("column", "c"),
        ("total", "acc"),
    ):
        source = re.sub(rf"\b{old}\b", new, source)
    source = source.replace("sum_kernel", "my_own_idea").replace(
        "    t, _", '    """Mine."""\n    # all mine\n    t, _'
    )
    head, kernel, launch = re.split(r"(?=@cute\.)", source)
    return head + launch + "\n\n" + kernel


def test_renaming_comments_and_order_hide_nothing():
    copy = renamed(WARP_A_ROW)
    assert "tidx" not in copy
    assert copy.index("@cute.jit") < copy.index("@cute.kernel")
    found = pairs({"ann": WARP_A_ROW, "bob": copy, "cyd": A_ROW_A_THREAD, "dee": A_BLOCK_A_ROW})
    assert {found[0].first, found[0].second} == {"ann", "bob"}
    assert found[0].likeness == 1.0
    assert all(pair.likeness < 0.5 for pair in found[1:])


def test_a_copy_with_three_changed_lines_is_listed_and_other_ways_are_not():
    changes = {
        "x.shape[1], 32)": "x.shape[1], 32, unroll=4)",
        "if l == 0:": "if l < 1:",
        "16 >> step": "1 << step",
    }
    changed = renamed(WARP_A_ROW)
    for old, new in changes.items():
        assert old in changed
        changed = changed.replace(old, new)
    found = pairs({"ann": WARP_A_ROW, "bob": changed, "cyd": A_ROW_A_THREAD, "dee": A_BLOCK_A_ROW})
    assert found[0].likeness >= ALIKE
    assert all(pair.likeness < 0.33 for pair in found[1:])


def test_what_the_whole_class_has_weighs_little():
    """The starter's lines are in every answer: they make two answers of a class alike less than of a pair."""
    starter = "def launch(x):\n    a = x + 1\n    b = x * 2\n    c = x - 3\n    d = x / 4\n"
    two = {"ann": f"{starter}    e = [i for i in x]\n", "bob": f"{starter}    while x:\n        x.pop()\n"}
    others = {str(number): f"{starter}    y{number} = x{'.a' * number}\n" for number in range(1, 9)}
    alone = pairs(two)[0].likeness
    in_class = next(one.likeness for one in pairs({**two, **others}) if {one.first, one.second} == set(two))
    assert in_class < alone


def test_a_source_that_is_not_python_is_like_nothing():
    assert sequences("x = = 1") == frozenset()
    assert sequences("x = " + "-" * 100_000 + "1") == frozenset()
    assert pairs({"ann": "x =", "bob": "x ="})[0].likeness == 0.0
