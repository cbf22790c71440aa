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


def test_functions_that_the_file_makes_by_a_call_are_copied():
    source = """
import torch
import torch.nn as nn
from itertools import repeat

def repeated(n):
    return lambda x: x if isinstance(x, tuple) else tuple(repeat(x, n))

to_pair = repeated(2)
half = lambda x: x // 2
rows = list(range(64))

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.extents = to_pair(half(size))
        self.linear = nn.Linear(*self.extents)
    def forward(self, x):
        return self.linear(x)
"""
    built = constructor(problem(source))
    assert built.definitions.index("def repeated") < built.definitions.index("to_pair = repeated(2)")
    assert "half = lambda x: x // 2" in built.definitions
    assert "from itertools import repeat" in built.imports
    with pytest.raises(Declined, match="'rows', which changes with the size"):
        constructor(problem(source.replace("half(size)", "rows[-1]")))


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


def test_methods_and_class_attributes_that_the_constructor_reads_come_with_it():
    source = """
import torch
import torch.nn as nn
import math

class Model(nn.Module):
    expansion = 4
    unused = 1

    def __init__(self, size):
        super(Model, self).__init__()
        self.layers = self._layers(size)

    def _layers(self, size):
        widths = [size, size * self.expansion]
        return nn.Sequential(nn.Linear(*widths), self._last())

    def _last(self):
        return nn.LeakyReLU(1 / math.e)

    def _other(self):
        return missing

    def forward(self, x):
        return self.layers(x)

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return [8]
"""
    built = constructor(problem(source))
    scope = {}
    lines = [*built.imports, "import torch", "class ModelNew(torch.nn.Module):"]
    exec("\n".join([*lines, *(f"    {line}" for line in built.init.splitlines())]), scope)
    model = scope["ModelNew"](8)
    assert model.layers[0].weight.shape == (32, 8)
    assert "unused" not in built.init
    assert "_other" not in built.init
    assert "forward" not in built.init


def test_a_parameter_named_as_a_size_of_the_file_is_no_such_size():
    source = RELU.replace(
        "class Model(nn.Module):\n",
        "width = 8192\n\n"
        "class Block(nn.Module):\n"
        "    def __init__(self, width):\n"
        "        super().__init__()\n"
        "        self.layers = nn.ModuleList([nn.Linear(width, n) for n in (width, 2 * width)])\n\n"
        "class Model(nn.Module):\n"
        "    def __init__(self, size):\n"
        "        super().__init__()\n"
        "        self.block = Block(size)\n",
    )
    assert "class Block" in constructor(problem(source)).definitions


def test_a_tensor_that_nothing_reads_is_left_out_where_it_has_the_size_of_the_inputs():
    sized = RELU.replace(
        "class Model(nn.Module):\n",
        "batch = 4096\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = nn.Linear(3, 4)\n        self.state = torch.randn((batch, 8192))\n",
    )
    assert "self.layer" in constructor(problem(sized)).init
    assert "self.state" not in constructor(problem(sized)).init
    with pytest.raises(Declined, match="module-level name 'batch'"):
        constructor(problem(sized.replace("torch.relu(x)", "torch.relu(x + self.state)")))
