"""Accuracy of outputs in words, beside PyTorch's own error."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from cutegen_nb.analysis.figures.accuracy import LESS, MORE, SAME, accuracy_text, accuracy_words, exponent
from cutegen_nb.core.evaluation import Correctness, OutputComparison

OUTPUT = OutputComparison(
    index=0, shape=(4,), dtype="float32", matches=True, max_abs_error=0.0, relative_l2_error=1e-7,
    reference_relative_l2_error=1e-7, tolerance_abs=0.0, tolerance_rel=0.0, tolerance_l2=1e-4, bad_fraction=0.0,
)  # fmt: skip


def output(error, own=1e-7, *, matches=True, index=0):
    return replace(
        OUTPUT, relative_l2_error=error, reference_relative_l2_error=own, matches=matches, index=index
    )


def told(*outputs):
    return accuracy_text(Correctness(seeds=(1,), outputs=outputs, checks=()))


@pytest.mark.parametrize(
    ("error", "own", "words"),
    [
        (1e-7, 1e-7, SAME), (4e-7, 1e-7, SAME), (4.1e-7, 1e-7, LESS), (1e-7, 4e-7, SAME),
        (1e-7, 4.1e-7, MORE), (0.0, 1e-7, MORE), (1e-7, 0.0, LESS), (0.0, 0.0, SAME),
    ],
)  # fmt: skip
def test_errors_within_a_factor_of_four_are_the_same(error, own, words):
    assert accuracy_words(output(error, own)) == words


def test_a_right_output_is_told_with_both_errors():
    assert told(output(2e-7)) == "relative error 2.0e-7, PyTorch's 1.0e-7 (as accurate as PyTorch)"
    assert told(output(0.0, 0.0)) == "exact (as accurate as PyTorch)"
    assert told(output(1e-5)).endswith("(less accurate)")


def test_a_wrong_output_is_told_with_what_is_allowed():
    assert told(output(0.63, matches=False)) == (
        "relative error 0.63, where 1.0e-4 is allowed; PyTorch's 1.0e-7"
    )


@pytest.mark.parametrize(
    ("outputs", "index"),
    [
        ((output(1e-7), output(1e-6, index=1)), 1),
        ((output(1.0, matches=False), output(1e-6, index=1)), 0),
        ((output(1e-5), output(math.nan, index=1)), 1),
        ((output(0.5, matches=False), output(math.nan, matches=False, index=1)), 1),
        ((output(0.0, 0.0), output(1e-7, index=1)), 1),
        ((output(1e-7), output(1e-9, 0.0, index=1)), 1),
    ],
)
def test_of_several_outputs_the_worst_is_told(outputs, index):
    assert told(*outputs).startswith(f"output {index} of 2: ")


def test_nothing_is_told_without_a_comparison():
    assert accuracy_text(None) == ""
    assert told() == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.63, "0.63"), (0.01, "0.01"), (0.0099, "9.9e-3"), (3.84e-4, "3.8e-4"), (99.0, "99"),
        (1234.0, "1.2e3"), (math.inf, "inf"), (math.nan, "nan"), (1e-12, "1.0e-12"),
    ],
)  # fmt: skip
def test_small_errors_have_an_exponent(value, text):
    assert exponent(value) == text
