from __future__ import annotations

import pytest
import torch

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.errors import ProblemError
from cutegen_nb.evaluator.problem.inputs import draw
from cutegen_nb.evaluator.problem.loader import load

MODEL = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


def loaded(inputs: str):
    return load(problem_from_string(f"{MODEL}import numpy, random\n{inputs}\n", name="p"), ())


def test_the_same_seed_gives_the_same_inputs_and_another_seed_others():
    problem = loaded(
        "def get_inputs(): return [torch.rand(4), torch.from_numpy(numpy.random.rand(4)), random.random()]"
    )
    first, again, other = (draw(problem, seed, "cpu") for seed in (1, 1, 2))
    for here, same, changed in zip(first, again, other, strict=True):
        assert torch.equal(torch.as_tensor(here), torch.as_tensor(same))
        assert not torch.equal(torch.as_tensor(here), torch.as_tensor(changed))


def test_numbers_and_scalar_tensors_pass_through():
    given = draw(loaded("def get_inputs(): return [torch.rand(()), 3.14, 2, True]"), 0, "cpu")
    assert given[0].shape == ()
    assert given[1:] == [3.14, 2, True]


def test_example_inputs_of_a_function_change_with_the_seed():
    source = "import torch\ndef f(x): return x\nexample_inputs = [torch.rand(4)]\n"
    problem = load(problem_from_string(source, name="p"), ())
    assert not torch.equal(draw(problem, 1, "cpu")[0], draw(problem, 2, "cpu")[0])
    assert torch.equal(draw(problem, 1, "cpu")[0], draw(problem, 1, "cpu")[0])


def test_inputs_come_without_gradients_and_on_the_asked_device():
    given = draw(
        loaded("def get_inputs(): return [torch.rand(4, device='cuda', requires_grad=True)]"), 0, "cpu"
    )
    assert (given[0].requires_grad, given[0].device.type) == (False, "cpu")


@pytest.mark.parametrize(
    ("inputs", "part"),
    [
        ("def get_inputs(): return [torch.rand(3), 'abc']", "element 1 is a str ('abc')"),
        ("def get_inputs(): return torch.rand(3)", "get_inputs of p returned a torch.Tensor"),
        ("def get_inputs(): return []", "0 elements with no tensor"),
        ("def get_inputs(): return [1, 2.5]", "no tensor among them"),
        ("def get_inputs(): return [torch.rand(3, dtype=torch.complex64)]", "dtype complex64"),
        ("def get_inputs(): return [torch.eye(3).to_sparse()]", "layout torch.sparse_coo"),
        ("def get_inputs(): return [torch.rand(n)]", "NameError: name 'n' is not defined at line 6"),
        ("get_inputs = 3", "defines no function get_inputs"),
    ],
)
def test_what_is_not_a_list_of_tensors_and_numbers_gets_one_sentence(inputs, part):
    with pytest.raises(ProblemError) as caught:
        draw(loaded(inputs), 0, "cpu")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
