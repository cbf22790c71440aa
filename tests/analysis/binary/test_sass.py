"""Instructions of a cubin, counted by name and line."""

from collections import Counter
from pathlib import Path

import pytest

from cutegen_nb.analysis.binary.cubin import BadCubin
from cutegen_nb.analysis.binary.sass import by_name, code_lines, code_of_cubin

CUBIN = (Path(__file__).parents[2] / "simulator" / "data" / "spills.sm_80.cubin").read_bytes()


def test_the_loads_of_a_kernel_are_counted_the_commonest_first():
    code = code_of_cubin(CUBIN, "kernel", "sm_80")
    assert code.language == "SASS"
    assert code.instructions["LDG.32"] == 80  # the kernel keeps 80 loaded words
    amounts = list(code.instructions.values())
    assert amounts == sorted(amounts, reverse=True)


def test_a_kernel_that_is_not_there_is_named():
    with pytest.raises(BadCubin, match="machine code of other"):
        code_of_cubin(CUBIN, "other", "sm_80")


def test_equal_counts_are_in_the_order_of_their_names():
    assert list(by_name(["b", "a", "c", "c"]).items()) == [("c", 2), ("a", 1), ("b", 1)]


def test_instructions_without_a_line_are_left_out():
    places = Counter({("k.py", 9): 2, ("k.py", 3): 1, ("", 0): 5})
    found = code_lines(places, Counter({("k.py", 9): 8}))
    assert [(one.line, one.instructions, one.spill_bytes) for one in found] == [(3, 1, 0), (9, 2, 8)]
