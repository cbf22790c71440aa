"""Point-wise work after a convolution runs where its output is stored."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.authors.offline.operators.convolution.strategies import MULTISTAGE, SHIFTED, TENSOR, TILES
from cutegen_nb.authors.offline.operators.tails import FUSE_TAIL
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

TEMPLATE = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.{module}{cast}

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [({inputs}){cast}]


def get_init_inputs():
    return []
"""
LADDERS = {
    "naive": (),
    "tiles": (TILES,),
    "mma": (TENSOR,),
    "stages": (TENSOR, MULTISTAGE),
    "shifted": (TILES, SHIFTED),
}
LARGEST_ERROR = {"": 2e-5, ".half()": 1e-2, ".bfloat16()": 4e-2}
"""In units of the output's root mean square, by cast. One fp16 product instead of three would cost 1e-3."""


def problem(module, inputs, cast=""):
    source = TEMPLATE.format(module=module, inputs=inputs, cast=cast)
    return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH)


def errors(folder, kernels):
    """Errors of kernel texts by name, each with its problem, as a child on the simulator of an H200 finds them."""
    for name, (given, source) in kernels.items():
        (folder / f"{name}.problem.py").write_text(given.source)
        (folder / f"{name}.kernel.py").write_text(source)
    child = Path(__file__).parents[2] / "wgmma_child.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(child), str(folder)],
        capture_output=True, text=True, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.long
def test_a_tail_reads_nothing_past_rows_that_are_stored_in_pairs(tmp_path):
    # Tensors beside the output end where it does: the last row's last pair is the last that may be read.
    cases = {
        "even": ("ConvTranspose2d(20, 20, 3, padding=1)", "torch.randn(2, 20, 6, 8)", "self.conv(x) * 2 + x"),
        "phases": ("ConvTranspose2d(16, 12, 4, 2, 1)", "torch.randn(2, 16, 6, 8)", "self.conv(x).tanh() * 2"),
    }
    kernels = {}
    for name, (module, inputs, forward) in cases.items():
        given = problem(module, inputs)
        given = replace(given, source=given.source.replace("self.conv(x)\n", f"{forward}\n"))
        steps = (SHIFTED, FUSE_TAIL)
        kernels[name] = given, OperatorsWriter().write(given, trace_facts(given), steps).source
    found = errors(tmp_path, kernels)
    assert all(isinstance(error, float) and error < LARGEST_ERROR[""] for error in found.values()), found


@pytest.mark.slow
@pytest.mark.long
def test_a_tail_is_applied_where_an_output_is_stored_in_every_form(tmp_path):
    given = problem("Conv2d(20, 20, 3, padding=1)", "torch.randn(2, 20, 6, 7)")
    given = replace(given, source=given.source.replace("self.conv(x)\n", "self.conv(x) * 2 + x\n"))
    facts = trace_facts(given)
    forms = {name: (*steps, FUSE_TAIL) for name, steps in LADDERS.items()}
    found = errors(
        tmp_path,
        {name: (given, OperatorsWriter().write(given, facts, steps).source) for name, steps in forms.items()},
    )
    assert found.keys() == LADDERS.keys()
    assert max(found.values()) < LARGEST_ERROR[""], found
