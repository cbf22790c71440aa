"""Tensors in memory of a GPU that two processes see: what needs no GPU to be refused."""

from __future__ import annotations

import ctypes

import pytest

from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.evaluator.worker import shared_tensors


@pytest.mark.parametrize(
    "form",
    [
        {"dtype": "float128", "shape": [4]},
        {"dtype": "load", "shape": [4]},
        {"dtype": "float32", "shape": [-1]},
        {"dtype": "float32", "shape": [2.0]},
        {"dtype": "float32", "shape": [True]},
    ],
)
def test_a_form_that_no_tensor_has_is_refused_before_the_driver_is_asked(form):
    for ask in (shared_tensors.share, shared_tensors.opened):
        with pytest.raises(EvaluatorError, match="cannot be shared"):
            ask({**form, "handle": "00" * 64})


def test_without_a_driver_files_are_left_to_carry_the_tensors(monkeypatch):
    def absent(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    with pytest.raises(shared_tensors.CannotShare, match=r"libcuda\.so\.1"):
        shared_tensors.share({"dtype": "float32", "shape": [4]})
