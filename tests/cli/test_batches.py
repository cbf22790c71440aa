"""Batches of kernels go out to another machine and their results come back."""

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
