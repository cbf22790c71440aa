"""Clocks by NVML, and persisting lines of the L2 by the driver, both played."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.timing import gpu_state
from cutegen_nb.evaluator.timing.cold_l2 import ColdCache


class NVMLError(Exception):
    pass


def nvml(reasons, *, broken=False):
    def handle(uuid):
        assert uuid == b"GPU-1234"
        if broken:
            raise NVMLError
        return "handle"

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM="sm",
        NVML_CLOCK_MEM="memory",
        NVML_TEMPERATURE_GPU="gpu",
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: reasons,
        nvmlDeviceGetClockInfo=lambda _, kind: {"sm": 1980, "memory": 3201}[kind],
        nvmlDeviceGetTemperature=lambda *_: 44,
        nvmlDeviceGetPowerUsage=lambda _: 312_500,
    )


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="1234"))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("reasons", "words"),
    [(0, ()), (0x1, ()), (0x4, ("power cap",)), (0x60, ("software thermal limit", "hardware thermal limit"))],
)
def test_the_state_of_a_gpu_names_what_slows_it(monkeypatch, reasons, words):
    monkeypatch.setitem(sys.modules, "pynvml", nvml(reasons))
    found = gpu_state.read()
    assert (found.sm_mhz, found.memory_mhz, found.temperature_c, found.power_w) == (1980, 3201, 44, 312.5)
    assert found.slowed_by == words


@pytest.mark.usefixtures("gpu")
def test_a_gpu_that_nvml_does_not_know_has_no_clocks(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", nvml(0, broken=True))
    assert gpu_state.read() is None


def test_without_nvmls_package_there_are_no_clocks(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_state.read() is None


class Driver:
    """The driver's calls on persisting lines."""

    def __init__(self, set_aside):
        self.set_aside = set_aside
        self.reset = 0

    def cuCtxGetLimit(self, size, _):
        size._obj.value = self.set_aside

    def cuCtxSetLimit(self, _, size):
        self.set_aside = size.value

    def cuCtxResetPersistingL2Cache(self):
        self.reset += 1

    @staticmethod
    def cuStreamGetAttribute(*_):
        return 1


@pytest.fixture
def cold(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))

    def make(driver, usual):
        made = object.__new__(ColdCache)
        made._driver, made._expected_bytes, made.set_aside_bytes = driver, usual, 0
        return made

    return make


def test_lines_that_a_candidate_made_persist_are_given_back_and_flagged(cold):
    driver = Driver(11_796_480)
    made = cold(driver, 11_796_480)
    made.give_back()
    assert (driver.set_aside, driver.reset) == (0, 1)
    assert made.kept() is None  # the driver's own choice
    driver.cuCtxSetLimit(6, ctypes.c_size_t(1 << 20))
    made.give_back()
    found = made.kept()
    assert (found.kind, found.severity) == ("persisting-l2", Severity.FLAG)
    assert "1048576 bytes of the L2 were set aside" in found.message
    assert driver.set_aside == 0


def test_without_a_driver_nothing_is_given_back(cold):
    made = cold(None, 0)
    made.give_back()
    assert made.kept() is None
