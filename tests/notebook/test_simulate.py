"""`%%simulate`: a cell as a whole program on the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from notebook_kernels import Kernel

ADDS = Path(__file__).parents[1] / "simulator" / "script_programs" / "adds.py"

DOUBLES = """import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def kernel(x: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    x[tidx + SHIFT] = x[tidx] * 2.0

@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=[1, 1, 1], block=[64, 1, 1])

x = torch.ones(64, device="cuda")
host(from_dlpack(x))
print("sum", x.sum().item(), {'braces': "{x}"})
"""

SENTENCES = {
    "%%simulate\n  \n": "the cell is empty",
    "%%simulate\ndef f(:\n": "cell.py is not a Python program: invalid syntax at line 2",
    "%%simulate --arch sm_42\nx = 1": "there is no 'sm_42': there is sm_80, sm_86",
    "%%simulate --max-ctas none\nx = 1": "'none' is not a number of CTAs",
    "%%simulate --deadline -1\nx = 1": "is not a number of seconds above 0",
    "%%simulate --nam a\nx = 1": "did you mean --name?",
    "%%simulate --name list\nx = 1": "'list' cannot be a variable",
    "%%simulate --name taken\nx = 1": "taken is a variable of yours (int) and is left alone",
    "%simulate nowhere.py": "cannot read the program nowhere.py",
    "%simulate": "something is missing: `%simulate [--arch",
}


@pytest.mark.parametrize("code", SENTENCES, ids=lambda code: code.splitlines()[0])
def test_a_wrong_request_gets_one_sentence(unattended: Kernel, code: str):
    unattended.run("taken = 3")
    ran = unattended.run(code)
    assert ran.status == "error"
    assert SENTENCES[code] in ran.error, ran.error
    assert len(ran.error.splitlines()) == 1


def test_help_says_that_the_cell_is_a_program_of_its_own(unattended: Kernel):
    shown = unattended.run("%%simulate?").payload[0]["data"]["text/plain"]
    assert "sees no variable of the notebook" in shown
    assert "--max-ctas" in shown
    assert "--arch" in unattended.run("%%simulate --help\n#").text
    assert unattended.complete("%%simulate --st") == ["--strict"]
    assert unattended.complete("%%simulate --arch sm_8") == ["sm_80", "sm_86", "sm_89"]


@pytest.mark.long
def test_a_cell_runs_and_shows_its_output_its_launches_and_its_lines(unattended: Kernel):
    unattended.run("from cutegen_nb.notebook import simulate\nsimulate.LATE_S = float('inf')")
    ran = unattended.run("%%simulate --name doubled\n" + DOUBLES.replace("SHIFT", "0"))
    unattended.run("simulate.LATE_S = 10.0")
    assert ran.status == "ok", ran.error
    assert ran.text == "sum 128.0 {'braces': '{x}'}\n"
    (shown,) = ran.outputs
    assert {"text/html", "text/plain"} <= set(shown["data"])
    assert "<script" not in shown["data"]["text/html"]
    assert "simulated counts" in ran.plain
    assert "no finding" in ran.plain
    assert "cell.py:9" in ran.plain, "the lines are those of the editor, the magic's among them"
    assert unattended.run("print(doubled.counters.gmem_bytes, len(doubled.launches))").text == "512 1\n"
    assert "NameError" in unattended.run("x").error, "the cell leaves no variable"


@pytest.mark.long
def test_a_program_that_takes_long_says_how_it_is_ended(unattended: Kernel):
    unattended.run("from cutegen_nb.notebook import simulate\nsimulate.LATE_S = 0.0")
    ran = unattended.run("%%simulate\nprint('done')")
    unattended.run("simulate.LATE_S = 10.0")
    assert ran.text.startswith("Still running. If a loop of the program never ends, interrupt the cell")
    assert ran.text.endswith("done\n")


@pytest.mark.long
def test_a_finding_is_shown_with_its_line_and_fails_only_a_strict_cell(unattended: Kernel):
    cell = DOUBLES.replace("SHIFT", "1")
    ran = unattended.run("%%simulate\n" + cell)
    assert ran.status == "ok"
    assert "FINDING cell.py:9: out-of-bounds" in ran.plain
    assert "x[tidx + 1]" in ran.plain
    strict = unattended.run("%%simulate --strict\n" + cell)
    assert strict.status == "error"
    assert "was stopped: out-of-bounds" in strict.error
    assert "FINDING" in strict.plain


@pytest.mark.long
def test_what_a_program_prints_is_escaped_and_bounded(unattended: Kernel):
    ran = unattended.run(
        "%%simulate\nimport sys\nfor _ in range(300):\n    print('y' * 10_000)\nraise ValueError('<b>&')"
    )
    assert ran.status == "ok"
    assert len(ran.text) < 1_200_000
    assert "more bytes of output that are not shown here" in ran.text
    assert "&lt;b&gt;&amp;" in ran.outputs[0]["data"]["text/html"]
    assert "No kernel launch came to its end." in ran.plain


@pytest.mark.long  # tests/cli/test_simulate.py runs a file with arguments, and the cells above run programs
def test_a_file_runs_with_its_arguments(unattended: Kernel):
    ran = unattended.run(f"%simulate --max-ctas 2 {ADDS} --n 1280 --skip-check")
    assert ran.status == "ok", ran.error
    assert "ran on cutegen simulator sm_80" in ran.text
    assert "10 (2 CTAs ran)" in ran.plain
