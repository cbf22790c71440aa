"""Sessions and kernels leave for other machines and come back, through the commands a person types."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.store.sqlite import SqliteStore

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]
SECRET = "sk-never-leaves-this-machine"
PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(3000)]


def get_init_inputs():
    return []
"""


@dataclass
class Done:
    """Result of a command."""

    returncode: int
    stdout: str
    stderr: str


def cutegen(folder: Path, *arguments: str) -> Done:
    """Run a command in this process, in a folder; its evaluations have processes of their own."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OPENAI_API_KEY", SECRET)
        status = main(arguments)
    return Done(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a session of two rounds, without a GPU."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "small.py").write_text(PROBLEM)
    done = cutegen(folder, "run", "small.py", "--rounds", "2", "--device", "simulator", "--store", "s")
    assert done.returncode == 0, done.stderr
    assert cutegen(folder, "export", "small", "-o", "small.cutegen", "--store", "s").returncode == 0
    return folder


def _session(store: Path, name: str = "small"):
    with SqliteStore(store, writable=False) as opened:
        return opened.load(name)


def test_a_folder_that_is_not_there_is_told_before_the_kernel_is_judged(here):
    done = cutegen(here, "export", "small", "-o", "nowhere/k.py", "--store", "s")
    assert done.returncode == 2
    assert done.stderr.startswith("cutegen-nb: error: nowhere/k.py cannot be written"), done.stderr
    assert cutegen(here, "export", "small", "-o", "k.txt", "--store", "s").returncode == 2


def test_a_session_is_imported_as_it_was_and_once_only(here):
    for _ in range(2):
        done = cutegen(here, "import", "small.cutegen", "--store", "t")
        assert done.returncode == 0, done.stderr
    assert "here already" in done.stdout
    assert _session(here / "t") == _session(here / "s")
    assert _session(here / "t").environment.keys() >= {"python", "torch", "nvidia-cutlass-dsl", "cutegen-nb"}
    assert SECRET.encode() not in (here / "small.cutegen").read_bytes()
    assert SECRET not in json.dumps([item.attempts[0].prompt.user for item in _session(here / "t").rounds])


def test_an_exported_kernel_is_a_module_that_verifies_itself_and_notices_an_edit(here):
    done = cutegen(here, "export", "small", "-o", "kernel.py", "--store", "s", "--unchecked")
    assert done.returncode == 0, done.stderr
    assert "tier C was left out" in done.stdout
    text = (here / "kernel.py").read_text()
    assert "nvidia-cutlass-dsl==" in text
    assert str(here) not in text
    compile(text, "kernel.py", "exec")
    good = cutegen(here, "verify", "kernel.py", "--tier", "A", "--device", "simulator", "--json")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["edited"] is False
    (here / "edited.py").write_text(text.replace("class ModelNew", "class  ModelNew"))
    again = cutegen(here, "verify", "edited.py", "--tier", "A", "--device", "simulator", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["edited"] is True


def test_a_session_for_a_named_gpu_is_exported_and_verified_for_it(here):
    done = cutegen(
        here, "run", "small.py", "--rounds", "1", "--device", "simulator", "--target", "H200", "--store", "h"
    )
    assert done.returncode == 0, done.stderr
    assert _session(here / "h").device.architecture == "sm_90a"
    done = cutegen(here, "export", "small", "-o", "hopper.py", "--store", "h")
    assert "It passed tier C on simulator (sm_90a)" in done.stdout, done.stderr
    done = cutegen(
        here, "verify", "hopper.py", "--tier", "A", "--device", "simulator", "--target", "H200", "--json"
    )
    assert json.loads(done.stdout)["device"] == "simulator (sm_90a)", done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("verify", "small.py"), "is no exported kernel"),
        (("import", "small.py", "--store", "t"), "is no bundle or is damaged"),
        (("import", "none.cutegen", "--store", "t"), "No such file"),
        (("evaluate",), "evaluate needs PROBLEM.py and CANDIDATE.py, or --batch"),
        (("evaluate", "small.py", "k.py", "--batch", "j"), "goes with -o RESULTS.jsonl"),
        (("export", "small", "-o", "x.txt", "--store", "s"), "does not say what to write"),
        (("pending", "nobody", "-o", "j", "--store", "s"), "no session 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(here, arguments, sentence):
    done = cutegen(here, *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
