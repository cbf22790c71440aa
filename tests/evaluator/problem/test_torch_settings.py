"""PyTorch's global settings are put back, those included that only make a baseline slow."""

from __future__ import annotations

import gc

import pytest
import torch

from cutegen_nb.evaluator.problem import torch_settings
from cutegen_nb.evaluator.trial.tampering import HarnessSnapshot


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: torch.use_deterministic_algorithms(mode=True), "deterministic algorithms"),
        (lambda: torch.backends.cuda.enable_flash_sdp(enabled=False), "flash attention"),
        (lambda: torch.set_autocast_enabled("cuda", True), "autocast on a GPU"),
        (lambda: setattr(torch.backends.cudnn, "enabled", False), "cudnn"),
        (lambda: torch.set_float32_matmul_precision("high"), "float32 matmul precision"),
    ],
)
def test_a_setting_is_put_back_and_told(change, words):
    before = torch_settings.settings()
    change()
    found = torch_settings.restore(before)
    assert [item.kind for item in found] == ["global-setting"] * len(found)
    assert any(words in item.message for item in found)
    now = torch_settings.settings()
    assert {name: now[name] for name in torch_settings._SETTINGS} == {
        name: before[name] for name in torch_settings._SETTINGS
    }
    assert torch_settings.restore(before) == ()


def test_a_class_of_the_extension_that_was_reached_into_counts_as_replaced():
    harness = HarnessSnapshot.capture((), None)
    inside = gc.get_referents(torch._C.TensorBase.__dict__)[0]
    real = inside["numel"]
    inside["numel"] = lambda self: 0
    try:
        assert "torch._C.TensorBase.numel" in harness.changed()
    finally:
        inside["numel"] = real
    assert harness.changed() == ()


@pytest.mark.parametrize("backend", ["cuda.matmul", "cudnn.conv"])
def test_a_precision_set_in_the_second_way_is_put_back_and_told(backend):
    owner = torch_settings._PRECISIONS.get(f"fp32_precision of {backend}")
    if owner is None:
        pytest.skip("this PyTorch has one way only")
    before = torch_settings.settings()
    owner.fp32_precision = "tf32" if owner.fp32_precision != "tf32" else "ieee"
    found = torch_settings.restore(before)
    assert any("fp32_precision" in item.message for item in found)
    assert torch.get_float32_matmul_precision() == before["float32 matmul precision"]
    assert torch_settings.restore(before) == ()


def test_a_problem_that_uses_the_second_way_itself_is_left_so():
    owner = torch_settings._PRECISIONS.get("fp32_precision of cuda.matmul")
    if owner is None:
        pytest.skip("this PyTorch has one way only")
    kept, owner.fp32_precision = owner.fp32_precision, "tf32"
    try:
        assert torch_settings.restore(torch_settings.settings()) == ()
        assert owner.fp32_precision == "tf32"
    finally:
        owner.fp32_precision = kept
