"""Candidates made from one honest kernel by exchanging its forward, and problems to hold them to."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator import evaluator

KERNEL = """
import cutlass
import numpy as np
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 256


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * THREADS + thread
    if index < count:
        value = x[index]
        {body}


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
    relu_kernel(x, y, count).launch(grid=((count + THREADS - 1) // THREADS, 1, 1), block=(THREADS, 1, 1))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = None
        self.kept = {{}}
        self.calls = 0

    def launch(self, x, y, count=None):
        flat = [from_dlpack(t.view(-1)).mark_layout_dynamic() for t in (x, y)]
        if self.compiled is None:
            self.compiled = cute.compile(relu, *flat, x.numel())
        self.compiled(*flat, x.numel() if count is None else count)
        return y

    def forward(self, x):
{forward}
"""
BODY = "y[index] = cutlass.max(value, cutlass.Float32(0.0))"
FORWARD = "return self.launch(x, torch.empty_like(x))"
PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def candidate(forward=FORWARD, body=BODY, before=""):
    lines = forward.strip().splitlines()
    indented = "\n".join(f"        {line}" for line in lines)
    bodies = "\n        ".join(body.strip().splitlines())
    return before + KERNEL.format(forward=indented, body=bodies)


def problem(inputs="torch.randn(37, 61)"):
    return PROBLEM.format(inputs=inputs)


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch):
    """What a check finds must not hang on how busy the machine is."""
    monkeypatch.setattr(evaluator, "CLOSER_ON_SIMULATOR_S", dict.fromkeys(Tier, 60.0))


@pytest.fixture(scope="session")
def make_candidate():
    return candidate


@pytest.fixture(scope="session")
def make_problem():
    return problem
