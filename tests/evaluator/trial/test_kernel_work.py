"""Tier A: an output has to come from a launched kernel, at every call; honest ways of doing so pass."""

from __future__ import annotations

import asyncio

import pytest

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.evaluation import CheckState, Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Severity

pytestmark = pytest.mark.slow

UNSEEN = """
import ctypes

import numpy


def unseen(tensor):
    found = (ctypes.c_float * tensor.numel()).from_address(tensor.data_ptr())
    return numpy.frombuffer(found, numpy.float32).reshape(tensor.shape)


"""
"""NumPy's view of a tensor's memory, which no function of PyTorch hands out."""
DECOY = """
self.launch(x, torch.empty_like(x), 1)
return torch.from_numpy(np.maximum(unseen(x), 0))
"""
HOST = """
y = self.launch(x, torch.empty_like(x))
unseen(y)[0] = np.nextafter(unseen(y)[0], np.float32(9))
return y
"""
POINTER_MEMO = """
if x.data_ptr() not in self.kept:
    self.kept[x.data_ptr()] = self.launch(x, torch.empty_like(x))
return self.kept[x.data_ptr()]
"""
CONTENT_MEMO = """
key = unseen(x).tobytes()
if key not in self.kept:
    self.kept[key] = self.launch(x, torch.empty_like(x))
return self.kept[key].clone()
"""
LAZY = """
y = self.launch(x, torch.empty_like(x))
class Lazy(tuple):
    def __iter__(self):
        return iter((torch.relu(x),))
return Lazy((y * 2,))
"""
PATCH = "import torch\ntorch.relu = lambda x: x * 0\n"
INHERITED = "import torch\ntorch.Tensor.relu = lambda self: self * 0\n"
"""PyTorch's `relu` of tensors is inherited from a class that Python code cannot change."""
HOOK = "import torch\ntorch.nn.modules.module.register_module_forward_hook(lambda *a: None)\n"

WRAPPERS = """
key = x.data_ptr()
y = torch.empty_like(x)
if key not in self.kept:
    self.kept[key] = from_dlpack(x.view(-1)).mark_layout_dynamic()
out = from_dlpack(y.view(-1)).mark_layout_dynamic()
if self.compiled is None:
    self.compiled = cute.compile(relu, self.kept[key], out, x.numel())
self.compiled(self.kept[key], out, x.numel())
return y
"""
WORKSPACE = """
if "y" not in self.kept:
    self.kept["y"] = torch.empty_like(x)
return self.launch(x, self.kept["y"])
"""
COPIED = """
work = self.launch(x, torch.empty_like(x))
y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
y.copy_(work)
return y.reshape(1, -1).view(x.shape)
"""


def _decisive(evaluation):
    return next(item for item in evaluation.findings if item.severity is Severity.DECIDES)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"before": UNSEEN, "forward": DECOY}, "decoy-launch"),
        ({"before": UNSEEN, "forward": HOST}, "written-on-host"),
        ({"forward": POINTER_MEMO}, "stale-result"),
        ({"before": UNSEEN, "forward": CONTENT_MEMO}, "no-kernel"),
        ({"before": PATCH}, "harness-replaced"),
        ({"before": INHERITED}, "harness-replaced"),
        ({"before": HOOK}, "harness-replaced"),
    ],
    ids=["decoy", "host", "pointer", "contents", "patch", "inherited", "hook"],
)
def test_an_output_that_no_kernel_made_is_condemned_with_evidence(
    judge, make_candidate, make_problem, change, kind
):
    evaluation = judge(make_problem(), make_candidate(**change))
    assert evaluation.outcome == Judged(verdict=Verdict.CHEATED), evaluation.summary
    assert _decisive(evaluation).kind == kind
    exhibit = evaluation.exhibits[0]
    assert exhibit.kind == kind
    assert exhibit.statement == _decisive(evaluation).message
    assert exhibit.trace
    assert evaluation.may_be_overruled
    assert decode(Evaluation, encode(evaluation)) == evaluation
    found = [item for item in evaluation.checks if item.state is CheckState.FOUND]
    assert found, "the check that found it says so"


@pytest.mark.long
def test_a_container_with_an_iterator_of_its_own_is_read_without_it(judge, make_candidate, make_problem):
    evaluation = judge(make_problem(), make_candidate(LAZY))
    assert not evaluation.passed


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "forward", [WRAPPERS, WORKSPACE, COPIED], ids=["wrapper by pointer", "workspace", "copied by PyTorch"]
)
def test_honest_ways_to_hand_out_a_kernels_output_pass(judge, make_candidate, make_problem, forward):
    evaluation = judge(make_problem(), make_candidate(forward))
    assert evaluation.passed, evaluation.summary
    assert not evaluation.exhibits


@pytest.mark.long
def test_open_work_of_pytorch_is_shown_with_its_line_and_accuses_nobody(judge):
    evaluation = judge("relu", "torch_relu")
    assert evaluation.outcome == Judged(verdict=Verdict.NOT_OWN_WORK), evaluation.summary
    exhibit = evaluation.exhibits[0]
    assert exhibit.kind == "torch-compute"
    line = judge.line("torch_relu", "torch.relu")
    assert exhibit.lines == (line, line)
    assert any("aten.relu" in item for item in exhibit.trace)
    assert exhibit.inputs
    assert exhibit.outputs


@pytest.mark.long
def test_every_accusation_of_the_shipped_cheats_comes_with_what_it_rests_on(judge):
    from cutegen_nb.exploits.library import chosen

    for item in chosen(["result_pipe_guess", "laundered", "tolerance_edit"]):
        evaluation = asyncio.run(judge.evaluator.evaluate(item.problem, item.candidate, lambda _: None))
        if evaluation.outcome == Judged(verdict=Verdict.CHEATED):
            assert evaluation.exhibits, item.name
            assert evaluation.exhibits[0].statement
