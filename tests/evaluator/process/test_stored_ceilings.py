"""Ceilings of a GPU are recalled for the same driver and torch, and never from a damaged file."""

from dataclasses import replace

import pytest

from cutegen_nb.evaluator.process import stored_ceilings
from cutegen_nb.testing.examples import simulated_device

FOUND = dict.fromkeys(stored_ceilings._FIELDS, 1)


@pytest.fixture
def device(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return replace(simulated_device(), uuid="GPU-1", driver="580.1")


def test_what_was_kept_is_recalled(device):
    assert stored_ceilings.recall(device) is None
    stored_ceilings.keep(device, FOUND)
    assert stored_ceilings.recall(device).items() >= FOUND.items()


def test_another_driver_another_gpu_and_no_gpu_have_none(device):
    stored_ceilings.keep(device, FOUND)
    assert stored_ceilings.recall(replace(device, driver="590.2")) is None
    assert stored_ceilings.recall(replace(device, uuid="GPU-2")) is None
    assert stored_ceilings.recall(replace(device, uuid="")) is None


@pytest.mark.parametrize("text", ["", "[]", '{"of": "something else"}'])
def test_a_damaged_file_costs_a_new_measurement(device, text):
    stored_ceilings.keep(device, FOUND)
    stored_ceilings._path(device).write_text(text)
    assert stored_ceilings.recall(device) is None


def test_a_field_that_an_older_version_did_not_measure_is_measured(device):
    stored_ceilings.keep(device, {name: 1 for name in FOUND if name != "l2_bytes"})
    assert stored_ceilings.recall(device) is None
