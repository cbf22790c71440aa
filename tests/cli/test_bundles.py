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


@pytest.mark.long
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


def test_a_batch_goes_out_is_cut_short_is_finished_and_comes_back_in_any_order(here, tmp_path):
    done = cutegen(here, "pending", "small", "-o", "jobs.jsonl", "--store", "s", "--json")
    assert json.loads(done.stdout)["jobs"] == ["r0"], "the approved one"
    done = cutegen(
        here, "pending", "small", "-o", "jobs.jsonl", "--store", "s", "--every", "--tier", "A", "--json"
    )
    assert json.loads(done.stdout)["jobs"] == ["r0", "r1"]
    # Elsewhere: killed in the middle of its second line, and begun again.
    batch = ("evaluate", "--batch", "jobs.jsonl", "-o", "results.jsonl", "--device", "simulator", "--json")
    first = cutegen(here, *batch)
    assert first.returncode == 0, first.stderr
    assert "no GPU here: the results are counts of the simulator and hold no times" in first.stderr
    results = here / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    results.write_text(lines[0] + lines[1][:1000])
    assert cutegen(here, "import", "small.cutegen", "--store", "u").returncode == 0
    partial = cutegen(here, "absorb", "results.jsonl", "--store", "u", "--json")
    assert [item["revision"] for item in json.loads(partial.stdout)["absorbed"]] == ["r0"]
    again = cutegen(here, *batch)
    assert again.returncode == 0, again.stderr
    whole = results.read_text().splitlines(keepends=True)
    assert whole[0] == lines[0]
    assert len(whole) == 2
    # A last line without its end, as an editor leaves it, is evaluated again and not lost.
    results.write_text(whole[0] + whole[1].rstrip("\n"))
    assert cutegen(here, *batch).returncode == 0
    whole = results.read_text().splitlines(keepends=True)
    assert len(whole) == 2
    results.write_text(whole[1] + whole[0])
    rest = cutegen(here, "absorb", "results.jsonl", "--store", "u", "--json")
    assert [item["revision"] for item in json.loads(rest.stdout)["absorbed"]] == ["r1"]
    session = _session(here / "u")
    assert [item.evaluation.passed for item in session.measurements] == [True, True]
    assert session.best.number == _session(here / "s").best.number


def test_a_result_for_another_kernel_or_problem_is_not_taken_in(here):
    result = json.loads((here / "results.jsonl").read_text().splitlines()[0])
    result["candidate_digest"] = "0" * 64
    other = {**result, "problem_digest": "1" * 64}
    (here / "forged.jsonl").write_text(f"{json.dumps(result)}\n{json.dumps(other)}\n")
    done = cutegen(here, "absorb", "forged.jsonl", "--store", "u")
    assert done.returncode == 1
    assert "no round has its candidate (SHA-256 000000000000…)" in done.stdout
    assert "another problem (SHA-256 111111111111…" in done.stdout
    assert len(_session(here / "u").measurements) == 2


def test_a_changed_job_is_refused_before_anything_runs(here):
    job = json.loads((here / "jobs.jsonl").read_text().splitlines()[0])
    job["candidate"]["source"] += "\n# changed\n"
    (here / "changed.jsonl").write_text(f"{json.dumps(job)}\n")
    done = cutegen(here, "evaluate", "--batch", "changed.jsonl", "-o", "none.jsonl")
    assert done.returncode == 2
    assert "line 1 of changed.jsonl was changed" in done.stderr
    assert not (here / "none.jsonl").exists()


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
