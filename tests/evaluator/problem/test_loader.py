from __future__ import annotations

import builtins
import dataclasses
import inspect
import os
import traceback

import pytest
import torch

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.problem import Rewrite
from cutegen_nb.evaluator.problem.loader import load

LINEAR = """import torch
N = 32

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.norm = torch.nn.BatchNorm1d(n)

    def forward(self, x):
        return self.norm(self.linear(x))

def get_init_inputs():
    return [N]

def get_inputs():
    return [torch.rand(8, N)]
"""


def loaded(source: str, *rewrites: Rewrite):
    return load(problem_from_string(source, name="p"), rewrites)


def refused(source: str) -> str:
    with pytest.raises(ProblemError) as caught:
        loaded(source).reference(0, "cpu")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_rewriting_a_literal_changes_the_module_and_not_the_source():
    problem = problem_from_string(LINEAR, name="p")
    small = load(problem, (Rewrite(line=2, column=4, full=32, scaled=4),))
    assert small.init_inputs() == [4]
    assert problem.source == LINEAR
    assert load(problem, ()).init_inputs() == [32]


def test_a_rewrite_whose_value_is_not_there_changes_nothing():
    assert loaded(LINEAR, Rewrite(line=2, column=4, full=33, scaled=4)).init_inputs() == [32]


def test_the_seed_alone_decides_the_parameters():
    problem = loaded(LINEAR)
    first, again, other = (problem.reference(seed, "cpu").state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["linear.weight"], other["linear.weight"])
    assert not torch.equal(first["norm.weight"], other["norm.weight"])


def test_parameters_that_start_as_one_value_are_drawn_around_it():
    state = loaded(LINEAR).reference(3, "cpu").state_dict()
    assert 0.75 <= state["norm.weight"].min() < state["norm.weight"].max() <= 1.25
    assert 0 < state["norm.bias"].abs().max() < 1
    assert state["norm.running_var"].min() > 0.5
    assert state["norm.num_batches_tracked"] == 0


def test_a_plain_function_comes_as_a_module():
    module = loaded("def f(x, a): return x * a\nexample_inputs = [1]\n").reference(0, "cpu")
    assert module(torch.ones(2), 3).tolist() == [3, 3]
    assert module.state_dict() == {}


def test_functions_and_dataclasses_of_the_module_can_be_inspected():
    source = "import dataclasses\n@dataclasses.dataclass\nclass C:\n    n: int = 3\ndef f(x): return C().n\nexample_inputs = [1]\n"
    namespace = loaded(source).namespace
    assert inspect.getsource(namespace["f"]) == "def f(x): return C().n\n"


def test_a_traceback_through_the_problem_shows_its_lines():
    module = loaded("def f(x):\n    return x.nothing\nexample_inputs = [1]\n").reference(0, "cpu")
    try:
        module(1)
    except AttributeError:
        assert "return x.nothing" in traceback.format_exc()


def test_cuda_in_a_problem_is_the_cpu_where_the_cpu_is_asked_for():
    source = LINEAR.replace(
        "self.norm = torch.nn.BatchNorm1d(n)",
        "self.norm = torch.nn.Identity().cuda(); self.w = torch.ones(3, device='cuda').cuda()",
    )
    assert loaded(source).reference(0, "cpu").w.device.type == "cpu"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("import nosuchmodule_\n" + LINEAR, "the module of the problem p raised ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n" + LINEAR, "raised SystemExit: 3 at line 2 (`sys.exit(3)`)"),
        (LINEAR.replace("return [N]", "return []"), "Model's constructor of the problem p raised TypeError"),
        (
            LINEAR.replace("return [N]", "return []"),
            "'n'; add a function get_init_inputs that returns a list of",
        ),
        (LINEAR.replace("return [N]", "return N"), "get_init_inputs of p returned a int"),
        (LINEAR.replace("return [N]", "return [1 / 0]"), "ZeroDivisionError: division by zero at line 14"),
        ("class Model:\n    pass\ndef get_inputs(): return []\n", "not a torch.nn.Module"),
        ("def f(x): return x\nf = 3\nexample_inputs = [1]\n", "f of p is a int once the module has run"),
    ],
)
def test_a_source_that_cannot_be_loaded_gets_one_sentence_with_its_line(source, part):
    assert part in refused(source)


def test_lines_of_a_cell_count_from_its_magic():
    source = LINEAR.replace("return [N]", "return [1 / 0]")
    with pytest.raises(ProblemError, match=r"at line 15 \(`def get_init_inputs|at line 15 \(`return"):
        load(problem_from_string(source, name="p", first_line=2), ()).init_inputs()


def test_an_interrupt_by_the_person_is_not_blamed_on_the_problem():
    with pytest.raises(KeyboardInterrupt):
        loaded("raise KeyboardInterrupt\n" + LINEAR)


def test_constructor_arguments_are_made_once_and_handed_out_as_copies_that_draw_nothing():
    source = LINEAR.replace("return [N]", "return [N, torch.rand(2), [1]]").replace(
        "(self, n)", "(self, n, t, l)"
    )
    problem = loaded(source)
    first = problem.init_inputs()
    first[2].append(2)
    torch.manual_seed(5)
    second = problem.init_inputs()
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))
    assert torch.equal(first[1], second[1])
    assert second[2] == [1]


def test_a_problem_is_compiled_although_its_file_may_not_be_read(monkeypatch):
    # Confinement hides the person's folders, and torch.compile opens the file that a code object names.
    path = "/somebody/elses/problem.py"
    problem = dataclasses.replace(problem_from_string(LINEAR, name="p"), path=path)
    exists, opened = os.path.exists, builtins.open
    monkeypatch.setattr(os.path, "exists", lambda name: name == path or exists(name))

    def refusing(name, *rest, **named):
        if name == path:
            raise PermissionError(13, "Permission denied", path)
        return opened(name, *rest, **named)

    monkeypatch.setattr(builtins, "open", refusing)
    reference = load(problem, ()).reference(0, "cpu")
    given = torch.rand(8, 32)
    torch.testing.assert_close(torch.compile(reference, backend="aot_eager")(given), reference(given))
    assert "self.norm(self.linear(x))" in inspect.getsource(type(reference).forward)
