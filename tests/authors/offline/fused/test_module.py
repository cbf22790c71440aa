"""The generated file: kernels, launchers and ModelNew in one module."""

import ast

import pytest

from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.authors.offline.fused.module import module_text
from cutegen_nb.authors.offline.fused.texts import texts
from cutegen_nb.authors.offline.fused.variants import SIMPLEST
from cutegen_nb.authors.offline.graph.reading import read
from cutegen_nb.core.problem import Problem, ProblemForm

SOURCE = """import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(): return [torch.rand(64, 32)]
def get_init_inputs(): return []
"""


@pytest.fixture
def text(traced):
    facts = traced("x.sum(1).sum()", "torch.rand(64, 32)")
    plan, groups = texts(read(facts), SIMPLEST)
    built = constructor(Problem(name="p", source=SOURCE, form=ProblemForm.KERNELBENCH))
    return module_text(plan, groups, "A title.", built)


def test_it_is_python_with_a_title_and_the_class_that_is_judged(text):
    tree = ast.parse(text)
    assert ast.get_docstring(tree).startswith("A title.")
    assert "ModelNew" in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def test_forward_launches_each_kernel_and_names_the_shapes_it_was_written_for(text):
    assert text.count("@cute.kernel") == 2
    assert "WRITTEN_FOR = 'x (64, 32)'" in text
