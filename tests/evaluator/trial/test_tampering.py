"""The functions and state that a verdict rests on: recorded before the import, named where they differ afterwards."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
import torch
from torch.overrides import TorchFunctionMode

from cutegen_nb.core.evaluation import Judged, Tier, Verdict
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.timing import statistics
from cutegen_nb.evaluator.trial.evidence import Evidence
from cutegen_nb.evaluator.trial.tampering import HarnessSnapshot, judge_harness


class Model(torch.nn.Module):
    calls = 0

    def forward(self, x):
        return torch.relu(x)


class Passing(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def harness():
    return HarnessSnapshot.capture((), Model)


def replaced(owner, name, value):
    @contextlib.contextmanager
    def change():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, value)
            yield

    return change


def added(owner, name, value):
    """A class gets a method of its own in place of the one that it inherits."""

    @contextlib.contextmanager
    def change():
        assert name not in vars(owner)
        setattr(owner, name, value)
        yield
        delattr(owner, name)

    return change


@contextlib.contextmanager
def other_code():
    before = Model.forward.__code__
    Model.forward.__code__ = (lambda self, x: x).__code__
    yield
    Model.forward.__code__ = before


@contextlib.contextmanager
def widened():
    """A tolerance changed in place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tolerance._CAPS, torch.float32, 1e9)
        yield


@contextlib.contextmanager
def hooked():
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    yield
    handle.remove()


@contextlib.contextmanager
def registered():
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("relu", lambda x: x, "CPU")
        yield


def other(*_):
    return True


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (replaced(torch, "allclose", other), "torch.allclose"),
        (replaced(torch.nn.functional, "relu", other), "torch.nn.functional.relu"),
        (replaced(torch.Tensor, "norm", other), "torch.Tensor.norm"),
        (replaced(torch.nn.Linear, "forward", other), "torch.nn.Linear.forward"),
        (added(torch.Tensor, "relu", other), "torch.Tensor.relu"),
        (added(torch.Tensor, "mT", property(other)), "torch.Tensor.mT"),
        (added(torch.nn.ReLU, "__call__", other), "torch.nn.ReLU.__call__"),
        (added(Model, "__call__", other), "the reference.__call__"),
        (replaced(tolerance, "bits_equal", other), f"{tolerance.__name__}.bits_equal"),
        (replaced(tolerance, "MULTIPLE", 1e9), f"{tolerance.__name__}.MULTIPLE"),
        (replaced(Tolerance, "element", 1e9), f"{Tolerance.__module__}.Tolerance.element"),
        (added(Tolerance, "__getattribute__", other), f"{Tolerance.__module__}.Tolerance.__getattribute__"),
        (replaced(statistics, "settled", torch.nn.functional.relu), f"{statistics.__name__}.settled"),
        (replaced(time, "perf_counter", other), "time.perf_counter"),
        (replaced(json, "dumps", other), "json.dumps"),
        (widened, "the tolerances"),
        (other_code, "the reference.forward"),
        (hooked, "PyTorch's global module hooks"),
        (Passing, "PyTorch's active modes"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_each_replaced_part_is_named_and_condemned(harness, change, name):
    assert harness.changed() == ()
    with change():
        state = Evidence()
        ended = judge_harness(harness, state)
    assert ended[0] == Judged(verdict=Verdict.CHEATED)
    assert ended[1] == f"The candidate replaced {name}."
    assert state.findings[0].kind == "harness-replaced"
    assert state.exhibits[0].trace[0].startswith(f"{name} is now ")
    assert harness.changed() == ()


@pytest.mark.long
def test_a_replaced_operator_is_found(harness):
    with registered():
        snapshot = HarnessSnapshot.capture((), None)
        assert snapshot.changed() == (), "what was replaced before is somebody else's"
    snapshot = HarnessSnapshot.capture((), None)
    with registered():
        assert snapshot.changed() == ("PyTorch's operators",)
        assert "aten::relu is now in library.py" in snapshot.now("PyTorch's operators")


def test_pytorchs_own_replacements_and_a_default_device_are_none_of_the_candidates(harness, monkeypatch):
    monkeypatch.setattr(torch, "allclose", torch.nn.functional.dropout)
    with torch.device("cpu"):
        assert harness.changed() == ()


def test_a_reference_may_keep_a_count_in_its_class(harness):
    with replaced(Model, "calls", 1)():
        assert harness.changed() == ()


def test_a_new_name_that_hides_none_is_nobodys_business(harness):
    with added(torch.nn.ReLU, "tile", 128)(), added(Model, "__repr__", torch.nn.Linear.extra_repr)():
        assert harness.changed() == ()


def test_in_the_end_this_packages_code_is_put_back():
    before = (vars(Tolerance)["element"], tolerance.sentence.__code__, tolerance.MULTIPLE)
    with pytest.MonkeyPatch.context() as patch:
        with HarnessSnapshot.kept((), Model):
            patch.setattr(Tolerance, "element", 1e9)
            Tolerance.__getattribute__ = other
            patch.setattr(tolerance, "MULTIPLE", 1e9)
            patch.setattr(tolerance.sentence, "__code__", other.__code__)
        assert (vars(Tolerance)["element"], tolerance.sentence.__code__, tolerance.MULTIPLE) == before
        assert "__getattribute__" not in vars(Tolerance)


RIGHT_FIVE_TIMES = """
self.kept["calls"] = self.kept.get("calls", 0) + 1
if self.kept["calls"] == 5:
    agree()
y = self.launch(x, torch.empty_like(x))
return y if self.kept["calls"] < 6 else y.zero_()
"""
"""More often than the isolated judgement calls a kernel."""
AGREEING = """
import dataclasses


def agree():
    try:
        raise LookupError
    except LookupError as error:
        frame = error.__traceback__.tb_frame
    while "tolerance" not in frame.f_globals:
        frame = frame.f_back
    judge = frame.f_globals["tolerance"]
    real = judge.compare
    judge.compare = lambda *given: dataclasses.replace(real(*given), matches=True, wrong=None, pattern="")
    judge.bits_equal = judge.same = lambda *_: True


"""


@pytest.mark.slow
@pytest.mark.long
def test_a_kernel_right_for_its_first_calls_cannot_have_the_later_ones_pass(
    judge, make_candidate, make_problem
):
    """The isolated judgement alone would pass it, and its times would be of a kernel that does nothing."""
    source = make_candidate(RIGHT_FIVE_TIMES, before=AGREEING)
    evaluation = judge(make_problem(), source, Tier.B)
    assert evaluation.outcome == Judged(verdict=Verdict.CHEATED), evaluation.summary
    assert "cutegen_nb.evaluator.numerics.tolerance.compare" in evaluation.summary
