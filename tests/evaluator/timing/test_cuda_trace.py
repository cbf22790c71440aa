"""Kernels of operators that a policy leaves to PyTorch, told from the candidate's in a trace."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from cutegen_nb.core.library import LibraryFamily, parse_library
from cutegen_nb.evaluator.timing.cuda_trace import TraceEvent, allowed_operators, trace_of, work_share
from cutegen_nb.evaluator.timing.plausibility import computed_by_a_library


@dataclass(frozen=True)
class Raw:
    """An event as the profiler records it."""

    named: str
    id: int
    start: int
    length: int
    thread: int = 1
    own: bool = False

    def name(self):
        return self.named

    def correlation_id(self):
        return self.id

    def start_ns(self):
        return self.start

    def duration_ns(self):
        return self.length

    def start_thread_id(self):
        return self.thread

    def is_user_annotation(self):
        return self.own

    def device_type(self):
        return torch.autograd.DeviceType.CPU


HOST = (
    Raw("aten::conv2d", 1, 0, 100),
    Raw("aten::cudnn_convolution", 2, 10, 50),
    Raw("aten::add_", 3, 70, 20),  # its bias, within the convolution
    Raw("aten::relu", 4, 120, 20),
    Raw("aten::add_", 5, 75, 5, thread=2),  # elsewhere at the same time
    Raw("aten::conv2d", 6, 200, 100, own=True),  # a candidate's own range of that name
    Raw("aten::relu", 7, 210, 20),
)


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [("conv", {1, 2, 3}), ("matmul", set()), ("conv,matmul", {1, 2, 3}), ("none", set())],
)
def test_what_an_allowed_operator_calls_is_allowed_on_its_own_thread_alone(policy, allowed):
    assert allowed_operators(HOST, parse_library(policy)) == allowed


def event(name, start, end, *, allowed=False, size=0):
    return TraceEvent(name=name, start_ns=start, end_ns=end, size_bytes=size, stream=7, allowed=allowed)


CALL = (
    event("kernel_cutlass_relu_0", 0, 1_000_000),
    event("void cudnn::conv", 1_000_000, 4_000_000, allowed=True),
    event("void at::native::copy_kernel", 4_000_000, 5_000_000),
    event("Memcpy DtoH (Device -> Pageable)", 5_000_000, 5_500_000, size=64),
)


def test_allowed_kernels_count_apart_and_accuse_nobody():
    found = trace_of(CALL, 7)
    assert (found.own_ms, found.allowed_ms, found.library_ms) == pytest.approx((1.0, 3.0, 0.0))
    assert (found.moving_ms, found.copying_ms, found.busy_ms) == pytest.approx((1.0, 0.5, 5.5))
    assert found.names == ("kernel_cutlass_relu_0",)
    assert computed_by_a_library(found, found) is None
    open_work = trace_of([event(item.name, item.start_ns, item.end_ns) for item in CALL], 7)
    assert computed_by_a_library(open_work, open_work).kind == "library-kernels"


def test_shares_of_a_call_add_up_to_one():
    share = work_share(trace_of(CALL, 7))
    assert share.own_fraction == pytest.approx(1 / 5.5)
    assert share.library_fraction == pytest.approx(4 / 5.5)
    assert share.host_fraction == pytest.approx(0.5 / 5.5)
    assert work_share(trace_of((), 7)) is None
    assert LibraryFamily.CONV in parse_library("conv")
