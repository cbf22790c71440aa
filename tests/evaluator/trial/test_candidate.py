"""A candidate's file, its module, and the reference's state in it, also under other names."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem import loader
from cutegen_nb.evaluator.trial import candidate as candidates
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width))
        self.scale = torch.nn.Parameter(torch.ones(width))
        self.bias = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return (x @ self.weight) * self.scale + self.bias

def get_inputs():
    return [torch.randn(3, 5)]

def get_init_inputs():
    return [5]
"""
SEED = 7


@pytest.fixture(scope="module")
def loaded():
    return loader.load(Problem(name="p", source=PROBLEM, form=ProblemForm.KERNELBENCH), ())


@pytest.fixture
def built(tmp_path, loaded):
    """ModelNew with these lines in its constructor, and the module's path."""

    def make(*lines):
        body = "".join(f"        {line}\n" for line in lines)
        source = (
            "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self, width):\n"
            f"        super().__init__()\n{body}    def forward(self, x):\n        return x\n"
        )
        path = candidates.write_source(source, tmp_path)
        module = candidates.import_candidate(path, "digest" * 8)
        return candidates.construct(module, loaded.init_inputs(), SEED, "cpu", path)

    return make


WEIGHT = "self.weight = torch.nn.Parameter(torch.randn(width, width))"
SCALE = "self.scale = torch.nn.Parameter(torch.ones(width))"
BIAS = "self.bias = torch.nn.Parameter(torch.zeros(width))"


@pytest.mark.parametrize(
    ("lines", "renamed", "missing"),
    [
        ((WEIGHT, SCALE, BIAS), {}, []),
        ((WEIGHT, BIAS, SCALE, "self.steps = torch.nn.Parameter(torch.zeros(9))"), {}, []),
        ((WEIGHT, SCALE.replace("scale", "factor"), BIAS.replace("bias", "shift")),
         {"scale": "factor", "bias": "shift"}, []),
        ((WEIGHT.replace("self.weight", "self.matrix"), SCALE, BIAS), {"weight": "matrix"}, []),
        ((WEIGHT, BIAS), {}, ["scale"]),
        ((WEIGHT, SCALE, "self.bias = torch.nn.Parameter(torch.zeros(1, width))"), {}, ["bias"]),
        ((SCALE, BIAS), {}, []),
    ],
    ids=["as they are", "others beside them", "constants renamed", "drawn and renamed", "left out", "other shape",
         "a drawn one folded in"],
)  # fmt: skip
def test_the_references_state_goes_where_the_candidate_keeps_it(loaded, built, lines, renamed, missing):
    reference, candidate = loaded.reference(SEED, "cpu"), built(*lines)
    held = reference.state_dict()
    assert not torch.equal(held["scale"], torch.ones(5)), "constants are redrawn"
    found = candidates.share_state(loaded, reference, candidate, SEED)
    assert (found.renamed, sorted(found.missing)) == (renamed, missing)
    own = candidate.state_dict()
    for name, tensor in held.items():
        place = renamed.get(name, name)
        if place in own and own[place].shape == tensor.shape:
            assert torch.equal(own[place], tensor), name


def test_the_same_seed_gives_both_the_same_drawn_weights(loaded, built):
    assert torch.equal(built(WEIGHT).weight, loaded.reference(SEED, "cpu").weight)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n", "After its import the file has no class ModelNew."),
        ("def ModelNew(): pass\n", "After its import the file has no class ModelNew."),
        (
            "class ModelNew:\n    def __init__(self, width): pass\n",
            "ModelNew gave ModelNew, which cannot be called",
        ),
        ("class ModelNew:\n    pass\n", "takes no arguments"),
    ],
)
def test_a_file_without_a_model_that_can_be_called_is_refused(tmp_path, source, message):
    path = candidates.write_source(source, tmp_path)
    module = candidates.import_candidate(path, "digest" * 8)
    with pytest.raises(CandidateFault, match=message):
        candidates.construct(module, [5], SEED, "cpu", path)


def test_a_disk_that_takes_no_file_is_our_fault(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(EvaluatorError, match=r"could not be written to .*; free space there\."):
        candidates.write_source("x = 1\n", tmp_path / "taken")
