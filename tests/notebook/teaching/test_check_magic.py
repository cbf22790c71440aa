"""`%%cutegen check` in a real kernel: one sentence for a wrong request, and an interrupt that leaves it usable.

The commands of cheats run in the same kernel, which has its template by then.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from notebook_kernels import Kernel

pytestmark = pytest.mark.slow

SOLUTION = (Path(__file__).parents[3] / "notebooks" / "solutions" / "threads_3.py").read_text(
    encoding="utf-8"
)
ENDLESS = SOLUTION.replace(
    "        out[i] = total\n",
    "        j = i\n        while j >= 0:\n            j = j * 1\n            out[0] = x[0]\n        out[i] = total\n",
)

PRINTING = '        if i == 0:\n            cute.printf("total %d\\n", i)\n        out[i] = total\n'

SENTENCES = {
    "%%cutegen check\nx = 1": "check needs the name of an exercise: there is threads/1",
    "%%cutegen check thread/3\nx = 1": "there is no exercise 'thread/3': did you mean threads/3?",
    "%%cutegen check threads/3\n   ": "the cell is empty: write a kernel and launch(x, out) below the first line",
    "%cutegen check threads/3": "an answer is a cell: put `%%cutegen check NAME`, with two %, above a kernel and its `launch`",
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory) -> Iterator[Kernel]:
    started = Kernel(tmp_path_factory.mktemp("lesson"), attended=False)
    yield started
    started.close()


@pytest.mark.parametrize("code", SENTENCES)
def test_a_wrong_request_gets_one_sentence(kernel: Kernel, code: str):
    ran = kernel.run(code)
    assert ran.status == "error"
    assert SENTENCES[code] in ran.error
    assert len(ran.error.splitlines()) == 1


def test_the_names_of_the_exercises_are_completed(kernel: Kernel):
    assert kernel.complete("%%cutegen ch") == ["check"]
    assert kernel.complete("%%cutegen check coa") == ["coalescing/1", "coalescing/2", "coalescing/3"]


@pytest.mark.long
def test_an_answer_is_marked_and_leaves_no_variable(kernel: Kernel):
    ran = kernel.run("%%cutegen check threads/3\n" + SOLUTION)
    assert ran.status == "ok"
    assert "solved, 3 of 3 points" in ran.plain
    (shown,) = ran.outputs
    assert "3 of 3 points" in shown["data"]["text/html"]
    assert "NameError" in kernel.run("launch").error
    broken = kernel.run("%%cutegen check threads/3\nx = = 1")
    assert broken.status == "ok", "what a student gets wrong is a mark, not an error"
    assert "Line 2 is not Python: invalid syntax." in broken.plain


@pytest.mark.long
def test_what_an_answer_prints_is_shown_above_its_mark(kernel: Kernel):
    ran = kernel.run("%%cutegen check threads/3\n" + SOLUTION.replace("        out[i] = total\n", PRINTING))
    assert ran.status == "ok"
    assert "Your answer printed, in all calls of the check:\ntotal 0" in ran.plain
    assert "solved, 3 of 3 points" in ran.plain


@pytest.mark.long
def test_cheats_and_their_scoreboard_are_magics_too(kernel: Kernel):
    assert "class Model" in kernel.run("%cutegen cheat row_max --show").plain
    ran = kernel.run("found = %cutegen cheat event_patch\nfound.verdict")
    assert "CHEATED" in ran.plain
    assert "No cheat of yours was judged yet" in kernel.run("%cutegen scoreboard").plain
    assert "there is no exploit 'nothing'" in kernel.run("%cutegen cheat nothing").error


@pytest.mark.long
def test_a_check_that_is_interrupted_says_so_and_the_next_one_works(kernel: Kernel):
    assert "while j >= 0" in ENDLESS
    threading.Timer(3.0, kernel.manager.interrupt_kernel).start()
    ran = kernel.run("%%cutegen check threads/3\n" + ENDLESS)
    assert ran.error == "cutegen: interrupted: nothing was checked"
    assert "solved, 3 of 3 points" in kernel.run("%%cutegen check threads/3\n" + SOLUTION).plain
