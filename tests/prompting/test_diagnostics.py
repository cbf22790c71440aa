"""What a failed candidate's author is told: the message, the line, the pattern; not the noise about it."""

from __future__ import annotations

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Verdict
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


def test_both_lines_of_a_race_are_told():
    source = "\n".join(f"line_{number} = {number}" for number in range(1, 41))
    message = "thread 32 reads a word (from candidate.py:7); thread 0 writes it (from candidate.py:38)"
    failed = examples.failed(Verdict.RACE, message, line=38)
    text = evaluation_text(failed, Candidate(source=source, author="x"))
    assert "line 38: `line_38 = 38`" in text
    assert "line 7: `line_7 = 7`" in text
