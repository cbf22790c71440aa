"""The offline author's convolutions: which it takes, and what its kernels compute on the simulator."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.authors.offline.operators.convolution import writer
from cutegen_nb.authors.offline.operators.convolution.strategies import MULTISTAGE, SHIFTED, TENSOR, TILES
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
MARKED = "torch.randn(2, 20, 9, 8).masked_fill(torch.rand(2, 20, 9, 8) < 0.002, float('{}'))"
CASES = {
    "strided_grouped": ("Conv2d(4, 6, (3, 5), stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=2)",
                        "torch.randn(2, 4, 13, 17)", ""),
    "transposed_grouped": ("ConvTranspose2d(8, 12, (3, 5), (2, 3), (1, 2), groups=4, dilation=(2, 1))",
                           "torch.randn(2, 8, 6, 7)", ""),
    "odd": ("Conv2d(5, 7, 3)", "torch.randn(2, 5, 9, 11)", ""),
    "one_dimension": ("Conv1d(3, 8, 4, stride=3, dilation=2, padding=3, bias=False)",
                      "torch.randn(2, 3, 31)", ""),
    "three_dimensions": ("Conv3d(3, 4, (3, 2, 1), padding=(1, 0, 2))", "torch.randn(2, 3, 5, 6, 7)", ""),
    "several_tiles": ("Conv2d(40, 136, 3, padding=1)", "torch.randn(2, 40, 12, 13)", ""),
    "pointwise": ("Conv2d(64, 32, 1)", "torch.randn(2, 64, 8, 9)", ""),
    "same_padding": ("Conv2d(6, 9, (3, 5), padding='same')", "torch.randn(1, 6, 7, 8)", ""),
    "output_padding": ("ConvTranspose1d(6, 5, 5, stride=2, padding=1, output_padding=1, dilation=3)",
                       "torch.randn(2, 6, 11)", ""),
    "empty_phases": ("ConvTranspose2d(16, 24, 3, stride=5, padding=1, dilation=2)",
                     "torch.randn(2, 16, 4, 5)", ""),
    "transposed_three_dimensions": ("ConvTranspose3d(8, 8, (3, 5, 7), 2, (1, 2, 3), 1, groups=4)",
                                    "torch.randn(1, 8, 3, 4, 5)", ""),
    "transposed_dense": ("ConvTranspose2d(32, 16, (3, 7), padding=(1, 3))", "torch.randn(2, 32, 6, 9)", ""),
    "half": ("Conv2d(24, 40, 3, stride=2, padding=1)", "torch.randn(2, 24, 13, 11)", ".half()"),
    "bfloat16": ("Conv2d(3, 20, 5, padding=2)", "torch.randn(2, 3, 12, 10)", ".bfloat16()"),
    "transposed_half": ("ConvTranspose2d(12, 20, 4, 2, 1, 1)", "torch.randn(2, 12, 5, 6)", ".half()"),
    "infinity": ("Conv2d(20, 17, 3, padding=1)", MARKED.format("inf"), ""),
    "nan": ("Conv2d(20, 17, 3, padding=1)", MARKED.format("nan"), ""),
    "transposed_nan": ("ConvTranspose2d(20, 17, 3, 2, 1)", MARKED.format("nan"), ""),
    "wide_rim": ("Conv1d(20, 12, 3, dilation=70, padding=60)", "torch.randn(2, 20, 90)", ""),
    "odd_phases": ("ConvTranspose1d(6, 5, 4, stride=3, padding=2, dilation=2)", "torch.randn(2, 6, 11)", ""),
    "many_phases": ("ConvTranspose2d(16, 8, 5, stride=5)", "torch.randn(1, 16, 3, 3)", ".half()"),
    "phases_apart": ("ConvTranspose2d(16, 8, 5, stride=5)", "torch.randn(1, 16, 3, 4)", ""),
    "sides_without_taps": ("ConvTranspose3d(8, 12, 3, 2, 1, dilation=2)", "torch.randn(2, 8, 3, 4, 5)", ""),
    "large_numbers": ("Conv2d(9, 8, 3)", "torch.randn(2, 9, 8, 7) * 3e4", ""),
    "images_of_all_sizes": ("Conv2d(9, 8, 3, bias=False)",
                            "torch.randn(3, 9, 8, 7) * torch.tensor([1e-25, 1.0, 1e25])[:, None, None, None]",
                            ""),
}  # fmt: skip
"""Module, inputs and cast, by name."""
LADDERS = {
    "naive": (),
    "tiles": (TILES,),
    "mma": (TENSOR,),
    "stages": (TENSOR, MULTISTAGE),
    "shifted": (TILES, SHIFTED),
}
QUICK = [("odd", "naive"), ("strided_grouped", "shifted"), ("sides_without_taps", "shifted")]
"""Pairs of case and ladder that run in every test run; all of them in `make test-long`."""
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
    child = Path(__file__).parents[3] / "wgmma_child.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(child), str(folder)],
        capture_output=True, text=True, check=False, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def kernels(pairs):
    """Problem and text of each case and ladder; each form is right where the menu does not offer it, too."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "suits_tensor_cores", lambda call: True)
        for case, ladder in pairs:
            given = problem(*CASES[case])
            written = OperatorsWriter().write(given, trace_facts(given), LADDERS[ladder])
            found[f"{case}_{ladder}"] = given, written.source
    return found


@pytest.mark.long
@pytest.mark.slow
def test_three_warp_groups_share_a_tile_as_two_do(tmp_path):
    given, source = kernels([("half", "shifted")])["half_shifted"]
    three = source.replace("((3, 128), (2, 192))", "((3, 128),)")
    assert three != source
    assert_right(errors(tmp_path, {"half_shifted": (given, three)}))


def assert_right(found):
    for name, error in found.items():
        case = next(case for case in sorted(CASES, key=len, reverse=True) if name.startswith(case))
        assert isinstance(error, float), f"{name}: {error}"
        assert error < LARGEST_ERROR[CASES[case][2]], f"{name}: {error}"


@pytest.mark.slow
def test_convolutions_are_right_and_clean(tmp_path):
    assert_right(errors(tmp_path, kernels(QUICK)))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.every(long=3)
@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("ladder", LADDERS)
def test_every_convolution_is_right_in_every_form(tmp_path, ladder, half):
    # With one stage the kernel is that of several, less the overlap of its copies: four cases are enough.
    cases = ("odd", "half", "nan", "strided_grouped") if ladder == "mma" else tuple(CASES)
    cases = cases[half::2]
    assert_right(errors(tmp_path, kernels([(case, ladder) for case in cases])))
