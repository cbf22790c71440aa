"""The constructor of a generated file."""

import pytest

from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.problem import Problem, ProblemForm

RELU = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(4096, 8192)]

def get_init_inputs():
    return []
"""


def problem(source, library=()):
    return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH, library=library)


def test_the_constructor_is_the_reference_s_with_what_it_needs():
    source = """
import torch
import torch.nn as nn
import math

class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size) * math.pi)

class Model(nn.Module):
    def __init__(self, size, eps=1e-5):
        super(Model, self).__init__()
        self.scale = Scale(size)
        self.eps = eps
    def forward(self, x):
        return x * self.scale.weight
"""
    built = constructor(problem(source))
    assert "self.scale = Scale(size)" in built.init
    assert "class Scale" in built.definitions
    assert set(built.imports) == {"import math", "import torch.nn as nn"}


def test_a_constructor_that_reads_a_size_of_the_file_is_declined():
    source = (
        RELU.replace(
            "    def forward",
            "    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.ones(width))\n    def forward",
        )
        + "\nwidth = 8\n"
    )
    with pytest.raises(Declined, match="width"):
        constructor(problem(source))
