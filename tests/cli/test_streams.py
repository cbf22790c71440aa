"""Whatever standard output is, a command says its result or one sentence, with the status that is documented."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.notebook.approver import Answer

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "cutegen_nb"]


def cutegen(
    *arguments: str, cwd: Path, prefix: str = "", **variables: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [*COMMAND, *arguments]
    if prefix:
        command = ["bash", "-c", prefix, "bash", *command]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, timeout=120, check=False)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("letters", "arguments"),
    [
        ("ascii", ["strategies"]),
        ("ascii", ["checks"]),
        ("latin-1", ["layout", "--help"]),
        ("cp437", ["merge", "--help"]),
    ],
)
def test_a_terminal_with_few_letters_gets_a_table_with_those_it_has(tmp_path, letters, arguments):
    done = cutegen(*arguments, cwd=tmp_path, PYTHONIOENCODING=letters)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode(letters)
    assert b"Traceback" not in done.stderr


def test_a_full_disk_under_standard_output_is_a_sentence(tmp_path):
    done = cutegen("checks", cwd=tmp_path, prefix='exec "$@" >/dev/full')
    assert done.returncode == 2
    assert done.stderr.decode().startswith(
        "cutegen-nb: error: standard output could not be written (No space"
    )
    assert b"Traceback" not in done.stderr


def test_a_closed_standard_output_is_a_sentence(tmp_path):
    done = cutegen("checks", cwd=tmp_path, prefix='exec "$@" >&-')
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"standard output is closed" in done.stderr


@pytest.mark.long
def test_a_reader_who_has_seen_enough_is_no_failure(tmp_path):
    done = cutegen("instructions", "--json", cwd=tmp_path, prefix='"$@" | head -1; exit ${PIPESTATUS[0]}')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{\n", b"")


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "arguments", [["sessions", "nobody"], ["run", "nowhere.py"], ["profiles", "check", "nobody"]]
)
def test_a_refusal_is_one_json_object_too_where_json_was_asked_for(tmp_path, arguments):
    done = cutegen(*arguments, "--json", cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    assert done.returncode == 2
    assert f"cutegen-nb: error: {json.loads(done.stdout)['error']}\n" == done.stderr.decode()


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "arguments", [["checks", "--nope"], ["chekcs"], ["evaluate"], ["run", "p", "--rounds", "x"]]
)
def test_a_wrong_option_is_one_json_object_as_well(tmp_path, arguments):
    done = cutegen(*arguments, "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert f"cutegen-nb: error: {json.loads(done.stdout)['error']}\n" == done.stderr.decode()


@pytest.mark.long
def test_a_closed_standard_error_changes_nothing_else(tmp_path):
    done = cutegen("checks", "--json", cwd=tmp_path, prefix='exec "$@" 2>&-')
    assert done.returncode == 0
    assert json.loads(done.stdout)["checks"]


def test_an_interrupt_before_anything_began_is_a_sentence(tmp_path):
    """At the worst moment: while the package is imported."""
    (tmp_path / "sitecustomize.py").write_text(
        "import builtins, os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cutegen_nb.wiring':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    done = cutegen("checks", cwd=tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"cutegen-nb: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "relu.py"], "finished rounds are kept: the same command goes on with the session"),
        (["demo"], "`cutegen-nb sessions` lists them, `cutegen-nb demo` begins anew"),
        (["evaluate", "--batch", "jobs", "-o", "results"], "the same command again does the rest"),
        (["evaluate", "relu.py", "kernel.py"], "`cutegen-nb evaluate` again begins anew"),
    ],
)
def test_an_interrupt_says_what_is_kept_and_how_to_go_on(capsys, monkeypatch, arguments, said):
    def interrupted(work: Coroutine[None, None, Answer]) -> Answer:
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "run", interrupted)
    assert main(arguments) == 130
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


@pytest.mark.long
@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_the_command_as_an_interrupt_does(tmp_path):
    (tmp_path / "slow.py").write_text(
        "def f(x):\n    return x\n\n\ndef get_inputs():\n    while True:\n        pass\n"
    )
    process = subprocess.Popen(
        [*COMMAND, "problem", "slow.py", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    begun = process.stderr.readline()
    assert begun == b"tracing the problem\n", begun + process.stderr.read()
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out) == {"error": "interrupted"}
    assert b"again begins anew" in err
