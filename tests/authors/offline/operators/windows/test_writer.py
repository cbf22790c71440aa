"""The offline author's kernels over sliding windows, against PyTorch on the simulator."""

import pytest

from cutegen_nb.authors.offline.operators.windows.strategies import MARCH, SHARED
from cutegen_nb.authors.offline.operators.windows.writer import WindowsWriter
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = """
import torch
import torch.nn.functional as F

def reference({arguments}):
    return F.{value}

def get_inputs():
    return [{inputs}]
"""


def source(value, *shapes, dtype="float32"):
    arguments = "xwb"[: len(shapes)]
    inputs = [f"torch.randn({shape}, dtype=torch.{dtype})" for shape in shapes]
    return SOURCE.format(value=value, arguments=", ".join(arguments), inputs=", ".join(inputs))


WINDOWS = {
    "maxima with padding of -inf": source("max_pool2d(x, 4, 1, 1)", "2, 3, 19, 37"),
    "a convolution of each channel": source("conv2d(x, w, groups=3)", "2, 3, 20, 24", "3, 1, 3, 3"),
    "a mean without its padding, ceil": source(
        "avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)", "2, 3, 16, 16"
    ),
    "dilated maxima of one dimension": source("max_pool1d(x, 8, 1, 4, 3)", "3, 5, 61"),
    "maxima of one dimension, no batch": source("max_pool1d(x, 3, 2, 1)", "5, 32"),
    "maxima with every attribute": source(
        "max_pool2d(x, (3, 2), (2, 3), (1, 1), (3, 2), ceil_mode=True)", "2, 3, 20, 24"
    ),
    "maxima of three dimensions, dilated": source("max_pool3d(x, 3, 2, 1, 3)", "1, 3, 13, 12, 16"),
    "a mean of one dimension": source("avg_pool1d(x, 8, 1, 4)", "3, 5, 64"),
    "a mean over large windows": source("avg_pool2d(x, 11)", "2, 2, 35, 70"),
    "a mean with its padding, ceil": source("avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True)", "3, 16, 17"),
    "a mean with a divisor": source("avg_pool2d(x, 3, 2, 1, divisor_override=5)", "2, 3, 16, 16"),
    "a mean of three dimensions": source("avg_pool3d(x, 3, 2, 1)", "2, 2, 9, 12, 20"),
    "a mean of three dimensions, uneven": source(
        "avg_pool3d(x, (3, 2, 1), (1, 2, 3), (1, 1, 0), count_include_pad=False)", "2, 9, 12, 20"
    ),
    "a convolution with every attribute": source(
        "conv2d(x, w, b, stride=(1, 2), padding=(2, 3), dilation=(2, 1), groups=3)",
        "2, 3, 20, 23",
        "3, 1, 3, 7",
        "3",
    ),
    "a convolution of one dimension": source(
        "conv1d(x, w, b, padding=2, groups=3)", "2, 3, 40", "3, 1, 5", "3"
    ),
    "a convolution of three dimensions": source(
        "conv3d(x, w, b, padding=1, groups=3)", "2, 3, 8, 9, 10", "3, 1, 3, 3, 3", "3"
    ),
    "fp16": source("max_pool2d(x, 3, 2, 1)", "2, 3, 16, 24", dtype="float16"),
    "bf16 in odd rows": source("avg_pool2d(x, 3, 1, 1)", "2, 3, 15, 23", dtype="bfloat16"),
    "an adaptive mean": source("adaptive_avg_pool2d(x, (3, 4))", "2, 3, 20, 20"),
    "adaptive maxima of one dimension": source("adaptive_max_pool1d(x, 7)", "2, 3, 20"),
    "an adaptive mean of as many rows as there are": source(
        "adaptive_avg_pool2d(x, (None, 7))", "16, 32, 64, 64"
    ),
    "interpolation by area": source("interpolate(x, scale_factor=0.5, mode='area')", "16, 32, 64, 64"),
    "an adaptive mean of three dimensions": source("adaptive_avg_pool3d(x, (3, 1, 2))", "2, 3, 9, 8, 7"),
}


@pytest.mark.slow
@pytest.mark.every(test=24, long=4)
@pytest.mark.parametrize("name", WINDOWS)
def test_the_last_revision_is_right(offline_simulator, name):
    answer = offline_simulator.ask(name, WINDOWS[name], steps=[-1])
    assert [entry["verdict"] for entry in answer["revisions"]] == ["right"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.every(long=12)
@pytest.mark.parametrize("name", WINDOWS)
def test_every_earlier_revision_is_right(offline_simulator, name):
    answer = offline_simulator.ask(name, WINDOWS[name], steps=[0])
    assert [entry["verdict"] for entry in answer["revisions"]] == ["right"]
    if "adaptive" not in name:
        answer = offline_simulator.ask(name, WINDOWS[name], steps=[1, 2])
        assert {entry["verdict"] for entry in answer["revisions"]} == {"right"}


@pytest.mark.slow
@pytest.mark.long
def test_nan_is_the_greatest_element(offline_simulator):
    # The logarithm of a negative number is NaN.
    text = source("max_pool2d(x, 3, 2, 1)", "2, 3, 20, 24").replace("float32)", "float32).log()")
    for step in (0, -1):
        answer = offline_simulator.ask("nan", text, steps=[step])
        assert [entry["verdict"] for entry in answer["revisions"]] == ["right"]


def facts_of(text):
    return trace_facts(Problem(name="given", source=text, form=ProblemForm.FUNCTION, function="reference"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "shapes", "expected"),
    [
        ("max_pool1d(x, 3)", ["2, 3, 32"], True),
        ("max_pool1d(x, 3, return_indices=True)", ["2, 3, 32"], False),
        ("conv1d(x, w, groups=3)", ["2, 3, 32", "3, 1, 2"], True),
        ("conv1d(x, w, groups=3)", ["2, 6, 32", "6, 2, 2"], False),
        ("conv_transpose1d(x, w, groups=3)", ["2, 3, 32", "3, 1, 2"], False),
    ],
)
def test_pooling_and_convolutions_of_single_channels_are_taken(value, shapes, expected):
    assert bool(WindowsWriter().matches(facts_of(source(value, *shapes)).full.graph)) is expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "staged"),
    [
        ("max_pool2d(x, 2)", False),
        ("avg_pool2d(x, 3, 4)", False),
        ("max_pool2d(x, 3, 2)", True),  # windows share elements
        ("max_pool2d(x, 2, 2, dilation=2)", True),
        ("avg_pool2d(x, 11)", True),  # rows of eleven taps
    ],
)
def test_slices_are_staged_where_they_are_read_again_or_rows_of_taps_are_long(call, staged):
    names = [item.name for item in OperatorsWriter().menu(facts_of(source(call, "4, 8, 64, 64")))]
    assert names[0] == MARCH
    assert (SHARED in names) == staged


def test_a_stored_session_goes_on_from_slices_that_are_offered_no_more():
    text = source("max_pool2d(x, 2)", "4, 8, 64, 64")
    problem = Problem(name="pool", source=text, form=ProblemForm.FUNCTION, function="reference")
    written = OperatorsWriter().write(problem, trace_facts(problem), (MARCH, SHARED))
    assert SHARED in written.source


def test_windows_that_depend_on_the_size_are_declined():
    text = source("avg_pool1d(x, x.shape[-1] // 4)", "64, 64, 4096")
    with pytest.raises(Declined, match="size"):
        OperatorsWriter().menu(facts_of(text))
