"""Registrations of PyTorch's operators: read once, and anew where Python code registered a kernel."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.evaluator.observe import operators


def test_registrations_that_are_as_before_are_read_once(monkeypatch):
    before = operators.read_registrations()
    monkeypatch.setattr(operators, "_registrations", pytest.fail)
    assert operators.read_registrations() is before


def test_a_kernel_registered_in_python_has_them_read_anew():
    before = operators.read_registrations()
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("relu", lambda x: x, "CPU")
        assert before.keys() - operators.read_registrations().keys() == {"aten::relu"}
    assert operators.read_registrations() == before


def test_without_pytorch_s_record_of_python_kernels_registrations_are_read_each_time(monkeypatch):
    before = operators.read_registrations()
    monkeypatch.delattr(torch.library, "_impls")
    again = operators.read_registrations()
    assert again == before
    assert again is not before
