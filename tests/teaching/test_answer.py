from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cutegen_nb.teaching.answer import completed, fault_of
from cutegen_nb.teaching.exercise import find_exercise

ROOT = Path(__file__).parents[2]
GOOD = (ROOT / "notebooks" / "solutions" / "coalescing_3.py").read_text(encoding="utf-8")
EXERCISE = find_exercise("coalescing/3")

FAULTS = {
    "x = = 3": "Line 1 is not Python: invalid syntax. It is: x = = 3",
    "import cutlass.cute as cute\ndef f(:": "Line 2 is not Python",
    "x = '\0'": "source code string cannot contain null bytes",
    "x = " + "-" * 50_000 + "1": "The cell is not Python: it is nested too deep.",
    "# " + "x" * 100_000: "The cell has 100,002 characters and is not read: an answer has at most 100,000.",
    "x = 1": "The cell does not import the DSL",
    GOOD.replace("cutlass", "cutlas"): "The cell does not import the DSL",
    GOOD.replace("@cute.kernel\n", ""): "The cell has no kernel",
    GOOD.replace("@cute.jit\n", ""): "The cell has no launch(x, y, out)",
    GOOD.replace("def launch(", "def start("): "The cell has no launch(x, y, out)",
    GOOD.replace("y: cute.Tensor, out: cute.Tensor):\n    x4", "out: cute.Tensor):\n    x4"): (
        "launch has 2 of the 3 arguments in line 13: it is called as launch(x, y, out)."
    ),
}


@pytest.mark.parametrize("source", FAULTS, ids=[words[:30] for words in FAULTS.values()])
def test_what_cannot_be_run_gets_one_sentence(source: str):
    said = fault_of(EXERCISE, source)
    assert FAULTS[source] in said
    assert "\n" not in said


def test_a_sound_answer_has_no_fault_and_keeps_its_lines():
    assert fault_of(EXERCISE, GOOD) == ""
    assert fault_of(EXERCISE, GOOD.replace("import cutlass.cute as cute", "from cutlass import cute")) == ""
    whole = completed(EXERCISE, GOOD)
    assert whole.startswith(GOOD)
    assert any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in ast.parse(whole).body)
