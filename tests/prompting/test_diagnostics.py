"""What a failed candidate's author is told: the message, the line, the pattern; not the noise about it."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Correctness, OutputComparison, Verdict
from cutegen_nb.core.wrong_values import TileShare, WrongKind, WrongValues
from cutegen_nb.prompting.diagnostics import excerpt, reduced_log
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.testing import examples

SOURCE = "import cutlass\n\n\ndef kernel():\n    x = 1\n    y = cute.nothing(x)\n    return y\n"
LOG = """\x1b[31mTraceback (most recent call last):\x1b[0m
  File "/opt/python/lib/python3.11/site-packages/cutlass/base_dsl/dsl.py", line 10, in run
    return self.func()
           ^^^^^^^^^^^
  File "candidate.py", line 6, in kernel
    y = cute.nothing(x)
        ^^^^
==========================================
AttributeError: module 'cutlass.cute' has no attribute 'nothing'
AttributeError: module 'cutlass.cute' has no attribute 'nothing'
"""


def test_an_excerpt_marks_the_line_and_numbers_its_neighbours():
    expected = "  4 | def kernel():\n  5 |     x = 1\n> 6 |     y = cute.nothing(x)\n  7 |     return y"
    assert excerpt(SOURCE, 6) == expected
    assert excerpt(SOURCE, 0) == excerpt(SOURCE, 99) == ""


def test_a_log_keeps_the_candidates_frames_and_the_message():
    assert reduced_log(LOG) == (
        '  File "candidate.py", line 6, in kernel\n'
        "    y = cute.nothing(x)\n"
        "AttributeError: module 'cutlass.cute' has no attribute 'nothing'"
    )


def test_a_long_log_keeps_its_end():
    text = reduced_log("\n".join(f"line {n}" for n in range(2000)), most=100)
    assert text.startswith("…")
    assert text.endswith("line 1999")
    assert len(text) <= 101


def test_a_compilers_message_is_told_once_with_its_line_and_excerpt():
    found = examples.failed(
        Verdict.COMPILE_FAILED, "The DSL did not compile it: no attribute 'nothing'", line=6
    )
    text = evaluation_text(found, Candidate(source=SOURCE, author="x"))
    assert text.count("no attribute 'nothing'") == 1
    assert "    > 6 |     y = cute.nothing(x)" in text


def test_a_pattern_of_wrong_values_is_told_with_tiles_and_its_usual_cause():
    wrong = WrongValues(
        kind=WrongKind.TILES,
        sentence="2 of 12 tiles of 64×64 are wrong throughout",
        hint="a CTA's coordinate",
        bad_count=8192,
        element_count=49152,
        tile_shape=(64, 64),
        tiles=(TileShare(tile=(1, 0), bad_fraction=1.0), TileShare(tile=(2, 1), bad_fraction=1.0)),
        bad_tiles=2,
        tile_count=12,
    )
    output = OutputComparison(
        index=0, shape=(256, 192), dtype="float32", matches=False, max_abs_error=3.0, relative_l2_error=0.4,
        reference_relative_l2_error=1e-7, tolerance_abs=1e-5, tolerance_rel=1e-5, tolerance_l2=1e-6,
        bad_fraction=8192 / 49152, first_bad=(64, 0), first_bad_values=(4.0, 1.0), pattern=wrong.sentence,
        wrong=wrong,
    )  # fmt: skip
    found = replace(
        examples.failed(Verdict.WRONG_VALUES, "Output 0 is wrong."),
        correctness=Correctness(seeds=(1,), outputs=(output,), checks=("values",)),
    )
    text = evaluation_text(found, Candidate(source=SOURCE, author="x"))
    assert "  - 8,192 of 49,152 elements wrong\n" in text
    assert "  - by tiles of 64×64: 2 of 12 hold wrong elements; worst: (1, 0) 100%, (2, 1) 100%\n" in text
    assert "  - usual cause: a CTA's coordinate" in text


def test_both_lines_of_a_race_are_told():
    source = "\n".join(f"line_{number} = {number}" for number in range(1, 41))
    message = "thread 32 reads a word (from candidate.py:7); thread 0 writes it (from candidate.py:38)"
    failed = examples.failed(Verdict.RACE, message, line=38)
    text = evaluation_text(failed, Candidate(source=source, author="x"))
    assert "line 38: `line_38 = 38`" in text
    assert "line 7: `line_7 = 7`" in text
