"""`cutegen-nb prompt` prints what would be sent, and sends nothing."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from cutegen_nb.cli.main import main
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.report.kernel_file import kernel_file

pytestmark = pytest.mark.usefixtures("one_template")
ROOT = Path(__file__).parents[2]
RELU = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
KERNELS = ROOT / "tests" / "evaluator" / "candidates"


@dataclass
class Done:
    """Result of a command."""

    returncode: int
    stdout: str
    stderr: str


def run(folder: Path, *arguments: str) -> Done:
    """Run a command in this process, in a folder; a kernel runs in a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    return Done(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("prompt")
    (made / "relu.py").write_text(RELU)
    return made


@pytest.fixture(scope="module")
def from_a_kernel(folder):
    """The request to optimise a given kernel, as JSON."""
    found = run(
        folder, "prompt", "relu.py", "--kernel", str(KERNELS / "relu.py"), "--device", "simulator", "--json"
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.mark.slow
def test_a_given_kernel_is_run_and_its_figures_and_one_strategy_are_asked_about(from_a_kernel):
    assert from_a_kernel["stage"] == "structure"
    assert from_a_kernel["strategy"] == "several-vectors-in-flight"
    assert "# This round: one structural strategy" in from_a_kernel["user"]
    assert "global 32-byte sectors" in from_a_kernel["user"]
    assert "relu_kernel" in from_a_kernel["user"]


@pytest.mark.slow
@pytest.mark.long
def test_an_exported_kernel_is_shown_without_what_the_export_wrote_around_it(folder):
    problem = Problem(name="relu", source=RELU, form=ProblemForm.KERNELBENCH)
    source = (KERNELS / "relu.py").read_text()
    text = kernel_file(source, problem, revision="r0 of relu", judged="It passed.", environment={})
    (folder / "exported.py").write_text(text)
    found = run(folder, "prompt", "relu.py", "--kernel", "exported.py", "--device", "simulator", "--json")
    assert found.returncode == 0, found.stderr
    assert source in json.loads(found.stdout)["user"]
    assert "kernel_sha256" not in found.stdout


@pytest.mark.slow
def test_the_digest_is_that_of_both_parts_and_the_tokens_are_estimated(from_a_kernel):
    both = f"{from_a_kernel['system']}\0{from_a_kernel['user']}"
    assert from_a_kernel["digest"] == hashlib.sha256(both.encode()).hexdigest()
    assert from_a_kernel["templates"] is None
    assert 1000 < from_a_kernel["tokens_estimate"] < 10_000


@pytest.mark.slow
def test_a_first_request_in_a_persons_own_words(folder):
    (folder / "mine" / "classes").mkdir(parents=True)
    (folder / "mine" / "classes" / "elementwise.md.jinja").write_text("Mind {{ dtype }}.\n")
    found = run(folder, "prompt", "relu.py", "--device", "simulator", "--prompts", "mine")
    assert found.returncode == 0, found.stderr
    assert "Mind float32." in found.stdout
    assert found.stdout.index("# The contract") < found.stdout.index("# The reference")
    assert not (folder / ".cutegen").exists()


@pytest.mark.slow
@pytest.mark.long
def test_a_kernel_that_fails_is_asked_about_as_a_failure(folder):
    kernel = str(KERNELS / "out_of_range.py")
    found = run(folder, "prompt", "relu.py", "--kernel", kernel, "--device", "simulator", "--stage", "repair")
    assert found.returncode == 0, found.stderr
    assert "# This request: the repair" in found.stdout
    assert "OUT_OF_BOUNDS" in found.stdout
    assert "the answer to the request for a diagnosis stands here" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("prompt",), "no problem: give PROBLEM.py, or --session NAME"),
        (("prompt", "--session", "x", "--kernel", "k.py"), "two places to start from"),
        (("prompt", "relu.py", "--prompts", "nowhere"), "is no folder"),
        pytest.param(
            ("prompt", "relu.py", "--device", "simulator", "--strategy", "grid-strode"),
            "did you mean grid-stride?",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("prompt", "relu.py", "--device", "simulator", "--strategy", "grid-stride"),
            "give one with --kernel",
            marks=pytest.mark.slow,
        ),
        (("run", "relu.py", "--dollars", "-1"), "'-1' is not an amount"),
        (("run", "relu.py", "--plateau", "0"), "'0' is not a number"),
    ],
)
def test_a_wrong_request_says_what_to_give_instead(folder, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(folder)
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert words in capsys.readouterr().err
