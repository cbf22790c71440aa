"""A notebook that nobody watches: the session runs to its end inside its cell, and the next cell uses it."""

from __future__ import annotations

import ast
import contextlib
import sqlite3
import threading
import time
import zipfile

import pytest
from notebook_kernels import PROBLEM, Kernel, Ran, rows

from cutegen_nb.testing.model_server import ModelServer, answers

SENTENCES = {
    "%%cutegen\n   \n": "the cell is empty",
    "%%cutegen --name a\ndef f(:\n": "does not parse: invalid syntax at line 2",
    "%%cutegen --name a\nx = 1\n": "neither a class Model nor a function",
    "%%cutegen --name taken\n" + PROBLEM: "taken is a variable of yours (int) and is left alone",
    "%%cutegen --name list\n" + PROBLEM: "list is a name of Python itself",
    "%%cutegen --name 1a\n" + PROBLEM: "not a Python identifier",
    "%%cutegen --rounds none\n" + PROBLEM: "not a number of rounds",
    "%%cutegen --autor offline\n" + PROBLEM: "did you mean --author?",
    "%%cutegen --device tpu\n" + PROBLEM: "there is no 'tpu': there is auto",
    "%%cutegen --name 'a\n" + PROBLEM: "close the quotation mark",
    "%%cutegen --author openai --name b\n" + PROBLEM: "no model is named",
    "%%cutegen --problem nowhere.py\n#": "nowhere.py does not exist",
    "%cutegen aprove": "did you mean approve?",
    "%cutegen reply": "put `%%cutegen reply` above it",
    "%%cutegen repyl\nx = 1": "no `%%cutegen repyl`: did you mean reply?",
    "%%cutegen approve\nx = 1": "type `%cutegen approve`",
    "%cutegen approve": "no session runs in this notebook",
    "%cutegen stop": "no session runs in this notebook",
    "%cutegen report": "no session is stored yet",
    "%cutegen export": "export needs a file",
    "%cutegen profile": "`profile` is a command of the terminal: `!cutegen-nb profile --help`",
    "%cutegen help nothing": "there is no `%cutegen nothing`",
}


def interrupted_once(rows_of: str, cell: str, kernel: Kernel) -> Ran:
    """Run the cell and interrupt the kernel when the store has the first of these rows."""

    def watch() -> None:
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline:
            with contextlib.suppress(sqlite3.OperationalError):
                if rows(kernel.folder, f"SELECT 1 FROM {rows_of}"):
                    kernel.manager.interrupt_kernel()
                    return
            time.sleep(0.005)

    (kernel.folder / ".cutegen").mkdir(exist_ok=True)
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    ran = kernel.run(cell)
    watching.join(10)
    return ran


class TestBeforeAnySession:
    def test_loading_says_nothing(self, unattended: Kernel):
        assert unattended.loaded.status == "ok"
        assert (unattended.loaded.text, unattended.loaded.outputs) == ("", [])
        assert unattended.run("%reload_ext cutegen_nb").text == ""

    @pytest.mark.parametrize("code", SENTENCES, ids=lambda code: code.splitlines()[0][:40])
    def test_bad_input_gets_one_sentence_and_no_traceback(self, unattended: Kernel, code: str):
        ran = unattended.run(f"taken = 3; get_ipython().run_cell({code!r}).raise_error()")
        shown = unattended.run(code)
        assert shown.status == ran.status == "error"
        assert SENTENCES[code] in shown.error, shown.error
        assert "Traceback" not in shown.error
        assert len(shown.error.splitlines()) == 1
        assert unattended.run("print(taken)").text == "3\n"

    def test_help_names_every_command_and_option(self, unattended: Kernel):
        text = unattended.run("%cutegen help").text
        for word in ("approve", "branch", "resume", "doctor", "--policy", "--store", "--strict"):
            assert word in text
        assert "--rounds K" in unattended.run("%cutegen resume --help").text
        assert "FILE" in unattended.run("%cutegen help export").text

    def test_a_question_mark_shows_the_help(self, unattended: Kernel):
        for question in ("%%cutegen?", "%cutegen?"):
            shown = unattended.run(question).payload[0]["data"]["text/plain"]
            assert "--baseline" in shown
            assert "approve" in shown

    def test_completion_offers_our_words_and_nothing_else(self, unattended: Kernel):
        assert unattended.complete("%cutegen re") == ["reject", "replay", "report", "request", "resume"]
        assert unattended.complete("%%cutegen re") == ["reject", "reply"]
        assert unattended.complete("%cutegen m") == ["merge"]
        assert unattended.complete("%%cutegen --po") == ["--policy", "--population"]
        assert unattended.complete("%%cutegen --policy a") == ["ask", "auto"]
        assert unattended.complete("%%cutegen --device ") == ["auto", "cuda", "simulator"]
        assert "--name" in unattended.complete("%%cutegen --")


# Braces in a cell are Python's: nothing expands them. Large enough for a better kernel to be estimated faster.
WHOLE = "%%cutegen --rounds 2\nBRACES = '{nothing}'\n" + PROBLEM.replace("64, 128", "1024, 1024")


@pytest.fixture(scope="module")
def ran(unattended: Kernel) -> Ran:
    return unattended.run(WHOLE)


class TestASession:
    def test_its_lineage_is_a_tree(self, ran, unattended: Kernel):
        shown = unattended.run("%cutegen sessions")
        name = rows(unattended.folder, "SELECT name FROM sessions")[0]
        assert name in shown.plain
        assert "cgs-table" in shown.outputs[-1]["data"]["text/html"]
        assert "sessions: all.html" in unattended.run("%cutegen sessions --html all.html").text
        assert "★ r1      r0    coalesced" in unattended.run(f"%cutegen sessions {name}").plain

    def test_a_stored_session_is_named_by_a_word_or_by_an_option(self, ran, unattended: Kernel):
        name = rows(unattended.folder, "SELECT name FROM sessions")[0]
        for words in (f"rounds {name}", f"rounds --name {name}"):
            assert "coalesced" in unattended.run(f"%cutegen {words}").plain, words
        said = unattended.run("print(list(_.columns), 'gmem_sectors' in gelu.rounds)")
        columns = ["strategy", "verdict", "relation", "estimate", "decision"]
        assert said.text == f"{columns} True\n", said.error

    def test_it_ends_inside_its_cell_and_is_stored(self, ran, unattended: Kernel):
        assert ran.status == "ok", ran.error
        assert len(rows(unattended.folder)) == 2
        assert "budget of 2 rounds" in rows(unattended.folder, "SELECT stopped FROM sessions")[0]

    def test_it_shows_a_plain_record_and_no_widget(self, ran):
        assert ran.mime_types == {"text/html", "text/plain"}
        assert "coalesced" in ran.plain
        assert "r1" in ran.outputs[-1]["data"]["text/html"]

    def test_the_session_is_an_object_named_after_the_function(self, ran, unattended: Kernel):
        said = unattended.run(
            "print(type(gelu.rounds).__name__, list(gelu.rounds.index), gelu.best.name, len(gelu.best.source) > 500)"
        )
        assert said.text == "DataFrame ['r0', 'r1'] r1 True\n", said.error
        assert "text/html" in unattended.run("gelu").mime_types
        assert "text/html" in unattended.run("gelu.best").mime_types
        assert "text/html" in unattended.run("gelu.report()").mime_types
        assert "class ModelNew" in unattended.run("print(gelu[0].source)").text
        assert "there is r0, r1" in unattended.run("gelu[9]").error

    @pytest.mark.long
    def test_the_kernel_is_called_in_a_worker_and_gives_tensors_back(self, ran, unattended: Kernel):
        said = unattended.run(
            "import torch, os\nmodule = gelu.best.module()\nx = torch.randn(32, 128)\n"
            "y = module(x)\nprint(y.dtype, tuple(y.shape), torch.allclose(y, torch.nn.functional.gelu(x) * 2, atol=1e-5))\n"
            "import sys; print('cutlass' in sys.modules)"
        )
        assert said.text == "torch.float32 (32, 128) True\nFalse\n", said.error
        assert "takes tensors and numbers" in unattended.run("module('x')").error

    def test_export_writes_what_the_suffix_says(self, ran, unattended: Kernel):
        folder = unattended.folder
        assert "left out as you asked" in unattended.run("%cutegen export best.py --unchecked").text
        assert unattended.run("gelu.export('r.html'); gelu.export('all.cutegen')").status == "ok"
        ast.parse((folder / "best.py").read_text())
        assert (folder / "r.html").read_text().startswith("<!DOCTYPE html>")
        assert {"session.json", "r0.py", "r1.py"} <= set(zipfile.ZipFile(folder / "all.cutegen").namelist())
        assert "end it in .py" in unattended.run("%cutegen export k.txt").error
        assert "cannot be written" in unattended.run("%cutegen export nowhere/k.py").error

    @pytest.mark.parametrize(
        ("line", "file"),
        [
            ("export -o a.py --unchecked", "a.py"),
            ("export gelu -o b.cutegen", "b.cutegen"),
            ("export --output c.html --name gelu --store .cutegen", "c.html"),
            ("export -o d.py --unchecked --device simulator", "d.py"),
            ("report gelu -o e.html", "e.html"),
        ],
    )
    def test_export_and_report_take_the_options_of_the_command_line(
        self, ran, unattended: Kernel, line: str, file: str
    ):
        said = unattended.run(f"%cutegen {line}")
        assert said.status == "ok", said.error
        assert said.text.startswith(f"{file}: ")
        assert (unattended.folder / file).stat().st_size

    def test_a_report_is_html_and_an_export_of_no_session_names_those_there_are(
        self, ran, unattended: Kernel
    ):
        assert "let 'r.py' end in .html" in unattended.run("%cutegen report -o r.py").error
        assert "no session 'other' is stored" in unattended.run("%cutegen export other -o k.py").error

    @pytest.mark.long  # tests/cli/test_bundles.py exports after tier C too
    def test_export_checks_at_tier_c_first(self, ran, unattended: Kernel):
        said = unattended.run("%cutegen export checked.py")
        assert said.status == "ok", said.error
        assert "It passed tier C on" in said.text
        assert "It passed tier C on" in (unattended.folder / "checked.py").read_text().splitlines()[0]

    def test_looking_at_it_works_by_magic_as_well(self, ran, unattended: Kernel):
        assert "+++ r1" in unattended.run("%cutegen diff r0 r1").plain
        assert "there is r0, r1" in unattended.run("%cutegen diff r0 r7").error
        assert "gelu" in unattended.run("%cutegen sessions").plain
        assert "ended" in unattended.run("%cutegen status").text
        assert "coalesced" in unattended.run("%cutegen rounds").plain
        assert "coalesced" in unattended.run("%cutegen report").plain
        assert "simulator" in unattended.run("%cutegen doctor").plain
        assert unattended.complete("%cutegen resume ge") == ["gelu"]

    def test_the_cell_run_again_goes_on_and_another_problem_gets_a_number(self, ran, unattended: Kernel):
        assert unattended.run(WHOLE).status == "ok"
        assert len(rows(unattended.folder)) == 2
        other = PROBLEM.replace("2.0", "3.0")
        again = unattended.run(f"%%cutegen --rounds 1 --strict\n{other}")
        assert again.status == "ok", again.error
        told = "gelu is stored with another source, device or library policy: this session is gelu_2.\n"
        assert told in again.text
        assert rows(unattended.folder, "SELECT name FROM sessions ORDER BY id") == ["gelu", "gelu_2"]
        assert unattended.run("print(gelu_2.best.name)").text == "r0\n"

    @pytest.mark.long
    def test_a_second_kernel_on_the_same_store_is_told_so(
        self, ran, unattended: Kernel, tmp_path, monkeypatch
    ):
        monkeypatch.setenv(
            "JPY_SESSION_NAME", "/home/ada/course/01_quickstart.ipynb"
        )  # as Jupyter's server does
        second = Kernel(tmp_path, attended=True)
        try:
            store = unattended.folder / ".cutegen"
            assert second.run(f"%%cutegen --policy ask --name held --store {store}\n{PROBLEM}").status == "ok"
            refused = unattended.run(f"%%cutegen --name other\n{PROBLEM}")
            assert refused.status == "error"
            assert "the notebook 01_quickstart.ipynb is writing to the sessions in" in refused.error
            assert "run `%cutegen stop` there" in refused.error
            assert "gelu" in unattended.run("%cutegen sessions").plain
        finally:
            second.close()

    @pytest.mark.long
    def test_a_session_is_resumed_with_the_server_that_it_asked(self, unattended: Kernel):
        with ModelServer([answers("Use vector loads.")]) as first, ModelServer([answers("No.")]) as second:
            options = f"--name asked --author openai --model m --base-url {first.url} --rounds 1"
            unattended.run(f"%%cutegen {options}\n{PROBLEM}")
            before = len(first.requests)
            assert before
            assert unattended.run("%cutegen resume asked --rounds 2").status == "ok"
            assert len(first.requests) > before
            elsewhere = f"--base-url {second.url} --model other"
            assert unattended.run(f"%cutegen resume asked --rounds 3 {elsewhere}").status == "ok"
            assert second.requests[0]["model"] == "other"

    @pytest.mark.long
    def test_after_restarts_the_last_server_and_model_given_are_asked(self, tmp_path):
        with ModelServer([answers("Use vector loads.")]) as first, ModelServer([answers("No.")]) as second:
            asked: list[tuple[int, int]] = []
            for cell in (
                f"%%cutegen --author openai --model m --base-url {first.url} --rounds 1\n{PROBLEM}",
                f"%cutegen resume gelu --rounds 2 --base-url {second.url} --model other",
                "%cutegen resume gelu --rounds 3",
            ):
                kernel = Kernel(tmp_path, attended=False)
                try:
                    assert kernel.run(cell).status == "ok"
                finally:
                    kernel.close()
                asked.append((len(first.requests), len(second.requests)))
            assert asked[0][0] == asked[2][0], "the first server is asked no more"
            assert asked[2][1] > asked[1][1] > 0
            assert second.requests[-1]["model"] == "other"

    def test_strict_fails_the_cell_when_nothing_was_approved(self, unattended: Kernel):
        hopeless = "import torch\ndef fft(x):\n    return torch.fft.fft(x).real\ndef get_inputs():\n    return [torch.randn(64)]\n"
        ran = unattended.run(f"%%cutegen --strict\n{hopeless}")
        assert ran.status == "error"
        assert len(ran.error.splitlines()) == 1

    @pytest.mark.long
    def test_an_interrupt_ends_the_session_in_a_sentence_and_keeps_its_rounds(self, unattended: Kernel):
        first = "rounds JOIN sessions ON session_id = id WHERE name = 'cut'"
        ran = interrupted_once(first, f"%%cutegen --name cut --rounds 9\n{PROBLEM}", unattended)
        assert ran.status == "error"
        assert "interrupted; finished rounds are kept" in ran.error
        assert (
            "stopped the session in round"
            in rows(unattended.folder, "SELECT stopped FROM sessions WHERE name = 'cut'")[0]
        )
        assert unattended.run("print(cut.name)").text == "cut\n"

    @pytest.mark.long  # the moment of an interrupt that the test before it sends earlier
    def test_an_interrupt_while_the_last_record_is_drawn_is_no_error_of_the_session(self, unattended: Kernel):
        ended = "sessions WHERE name = 'over' AND stopped <> ''"
        ran = interrupted_once(ended, f"%%cutegen --name over --rounds 1\n{PROBLEM}", unattended)
        assert ran.status == "ok" or "interrupted; finished rounds are kept" in ran.error
        assert unattended.run("print(over.best.name)").text == "r0\n"

    def test_unloading_ends_every_process(self, unattended: Kernel):
        count = (
            "import os\ndef children():\n    found = []\n    for pid in filter(str.isdigit, os.listdir('/proc')):\n"
            "        try: stat = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()\n"
            "        except OSError: continue\n"
            "        if int(stat[1]) == os.getpid() and stat[0] != 'Z': found.append(pid)\n    return found\n"
        )
        unattended.run(count)
        assert unattended.run("print(len(children()))").text != "0\n"
        assert unattended.run("%unload_ext cutegen_nb").status == "ok"
        assert unattended.run("print(len(children()))").text == "0\n"
        with sqlite3.connect(unattended.folder / ".cutegen" / "sessions.sqlite") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
