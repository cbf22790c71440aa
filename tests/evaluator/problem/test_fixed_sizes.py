"""A file that names the problem's full size gets a hint when a smaller one was judged."""

from __future__ import annotations

import pytest

from cutegen_nb.core.finding import Severity
from cutegen_nb.core.problem import Rewrite
from cutegen_nb.evaluator.problem.fixed_sizes import written_for_one_size

REWRITES = (Rewrite(line=5, column=10, full=1024, scaled=128), Rewrite(line=6, column=0, full=32, scaled=8))


def test_a_number_that_is_an_extent_made_smaller_is_named_with_its_line():
    found = written_for_one_size("def f(x):\n    for k in range(1024):\n        pass\n", REWRITES)
    assert (found.kind, found.severity, found.line) == ("names-the-full-size", Severity.FLAG, 2)
    assert "its 1024 as 128" in found.message


@pytest.mark.parametrize(
    "source",
    [
        "for k in range(2048): pass",
        "for k in range(32): pass",
        "THREADS = 1024",
        "TILE_M, TILE_N = 1024, 64",
        "kernel(x).launch(grid=(4, 1, 1), block=(1024, 1, 1))",
        "size = 1024\nkernel(x).launch(grid=(4, 1, 1), block=(size, 1, 1))",
        "def broken(:",
    ],
    ids=["another", "a small one", "threads", "a tile", "a block", "a named block", "no Python"],
)
def test_other_numbers_and_choices_of_the_author_are_no_extent(source):
    assert written_for_one_size(source, REWRITES) is None


def test_at_the_problems_own_size_no_number_is_wrong():
    assert written_for_one_size("for k in range(1024): pass", ()) is None


def test_what_no_cta_has_as_many_threads_of_is_an_extent_whatever_its_name():
    found = written_for_one_size("BLOCK = 4096\n", (Rewrite(line=1, column=0, full=4096, scaled=256),))
    assert found.line == 1
