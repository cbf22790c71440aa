"""Parameters on their way from the isolated judge to the candidate's process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem import loader
from cutegen_nb.evaluator.worker import shared_tensors, tensor_files
from cutegen_nb.evaluator.worker.isolated_call import _set_state
from cutegen_nb.evaluator.worker.isolated_judge import _Judge

SOURCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1024, 512)
        self.norm = torch.nn.LayerNorm(512)

    def forward(self, x):
        return self.norm(self.linear(x))

def get_inputs():
    return [torch.randn(2, 1024)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def allocated(monkeypatch):
    """Host memory in place of the driver's, by handle."""
    rooms = {}

    def share(form):
        handle = str(len(rooms))
        rooms[handle] = torch.empty(form["shape"], dtype=getattr(torch, form["dtype"]))
        return {**form, "handle": handle}, rooms[handle]

    monkeypatch.setattr(shared_tensors, "share", share)
    monkeypatch.setattr(shared_tensors, "opened", lambda packed: rooms[packed["handle"]])
    return rooms


@pytest.mark.parametrize("shared", [True, False])
def test_large_parameters_travel_as_the_inputs_do_and_each_value_once(tmp_path, allocated, shared):
    loaded = loader.load(Problem(name="linear", source=SOURCE, form=ProblemForm.KERNELBENCH), ())
    ground = SimpleNamespace(name="CPU", simulation=None, device="cpu")
    judge = _Judge(
        loaded=loaded, ground=ground, folder=tmp_path, model_seed=3, longest_sum=1024, gates=(), shared=shared
    )
    given = judge.given()

    sent = {name: "handle" in packed for name, packed in given["state"].items()}
    assert sent == {"linear.weight": shared, "linear.bias": False, "norm.weight": False, "norm.bias": False}
    # Only what the judge drew anew differs from the values that the constructor gives.
    assert [name for name, one in given["plain"].items() if one != given["state"][name]] == [
        "norm.weight", "norm.bias",
    ]  # fmt: skip
    candidate = loaded.namespace["Model"]()
    _set_state(candidate, given, tmp_path)
    for name, value in loaded.reference(3, "cpu").state_dict().items():
        assert torch.equal(candidate.state_dict()[name], value)
    assert len(allocated) == shared
    assert tensor_files.unpack(given["plain"]["norm.weight"], tmp_path).eq(1).all()
