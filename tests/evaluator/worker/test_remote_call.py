"""A candidate called with tensors of one's own, through a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import torch

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import EvaluatorError, UsageError
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.worker.remote_call import RemoteCall, ServedModule, pack, unpack_outputs

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]

PROBLEM = problem_from_string(
    """import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(n))

    def forward(self, x):
        return x * self.scale

def get_inputs():
    return [torch.randn(8, 16)]

def get_init_inputs():
    return [16]
""",
    name="scaled",
)

HEAD = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(n))
"""


@pytest.fixture(scope="module")
def call(one_template: None) -> Iterator:
    loop = asyncio.new_event_loop()
    evaluator = KernelEvaluator(device="simulator", deadline_s=10)

    def calling(body: str, *arguments, state=None):
        candidate = Candidate(source=f"{HEAD}    def forward(self, x):\n        {body}\n", author="person")
        return loop.run_until_complete(
            evaluator.serve(PROBLEM, candidate, RemoteCall(arguments=arguments, state=state))
        )

    calling.workers = evaluator._workers
    yield calling
    loop.run_until_complete(evaluator.close())
    loop.close()


def test_parameters_are_those_of_the_reference_under_seed_0(call):
    torch.manual_seed(0)
    scale = torch.rand(16)
    x = torch.randn(8, 16)
    assert torch.equal(call("return x * self.scale", x), x * scale)


def test_parameters_can_be_given(call):
    x, scale = torch.randn(3, 16), torch.arange(16.0)
    assert torch.equal(call("return x * self.scale", x, state={"scale": scale}), x * scale)


@pytest.mark.first(2)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.float64])
def test_every_type_and_shape_comes_back_as_it_was(call, dtype):
    for x in (torch.ones(2, 3, dtype=dtype), torch.zeros(0, 4, dtype=dtype), torch.tensor(1, dtype=dtype)):
        found, transposed = call("return x.clone(), x.t().contiguous() if x.dim() == 2 else x.clone()", x)
        assert found.dtype is dtype
        assert torch.equal(found, x)
        assert transposed.shape == (x.t() if x.dim() == 2 else x).shape


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise RuntimeError('no')", "CRASHED"),
        ("import os; os._exit(3)", "EXITED"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("return 'text'", "not a tensor"),
        ("exit(1)", "EXITED"),
    ],
)
def test_a_fault_of_the_kernel_is_told_and_never_ours(call, body: str, words: str):
    with pytest.raises(EvaluatorError, match=words):
        call(body, torch.ones(2, 16))


@pytest.mark.long
def test_a_kernel_that_never_ends_is_ended(call, monkeypatch):
    monkeypatch.setattr(call.workers, "_deadline_s", 2.0)
    with pytest.raises(EvaluatorError, match="Not finished after 2 s"):
        call("while True: pass", torch.ones(2, 16))


def test_only_tensors_and_numbers_travel(tmp_path):
    with pytest.raises(UsageError, match="argument 0 is a str"):
        ServedModule(name="x", call=lambda given: pack(given, tmp_path))("x")


@pytest.mark.parametrize("trick", ["link", "short", "folder", "type"])
def test_what_the_worker_left_is_checked_and_nothing_of_it_is_run(tmp_path, trick: str):
    target = tmp_path / "output-0"
    record = {"outputs": [{"file": "../../etc/passwd", "dtype": "float32", "shape": [4]}], "single": True}
    if trick == "link":
        (tmp_path / "secret").write_bytes(bytes(16))
        target.symlink_to(tmp_path / "secret")
    elif trick == "short":
        target.write_bytes(bytes(12))
    elif trick == "folder":
        target.mkdir()
    else:
        target.write_bytes(bytes(16))
        record["outputs"][0]["dtype"] = "load"
    with pytest.raises((EvaluatorError, OSError)):
        unpack_outputs(record, tmp_path, ())
