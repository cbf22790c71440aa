"""Problems, candidates and one warm evaluator for the tests of this folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.library import parse_library
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.evaluator import KernelEvaluator

HERE = Path(__file__).parent
RELU_KERNEL = """
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
RELU_BODY = "y[index] = cutlass.max(value, cutlass.Float32(0.0))"
RELU_FORWARD = "return self.launch(x, torch.empty_like(x))"
RELU_PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


class Judge:
    """An evaluator driven from synchronous tests; each call has an event loop of its own.

    Problems and candidates are given by the name of their file, or as source. A template that is given stays
    when the evaluator is closed.
    """

    def __init__(self, *, template=None, **settings):
        self.evaluator = KernelEvaluator(**settings)
        self.given = self.evaluator._workers.server = template
        self.stages = []

    @staticmethod
    def problem(given, library=""):
        source = given if "\n" in given else (HERE / "problems" / f"{given}.py").read_text()
        policy = parse_library(library)
        return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH, library=policy)

    @staticmethod
    def source(name):
        return (HERE / "candidates" / f"{name}.py").read_text()

    @classmethod
    def candidate(cls, given):
        return Candidate(source=given if "\n" in given else cls.source(given), author="test")

    def line(self, name, text):
        """Line of a candidate's file that holds `text`."""
        lines = self.source(name).splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def __call__(self, problem, candidate, tier=Tier.A, library=""):
        self.stages.clear()
        return asyncio.run(
            self.evaluator.evaluate(
                self.problem(problem, library), self.candidate(candidate), self.stages.append, tier
            )
        )

    def facts(self, problem):
        return asyncio.run(self.evaluator.facts(self.problem(problem), self.stages.append))

    @property
    def template(self):
        return self.evaluator._workers.server.process_id

    def close(self):
        if self.given is not None:
            self.evaluator._workers.server = None
        asyncio.run(self.evaluator.close())


@pytest.fixture(scope="session")
def judge_class():
    return Judge


@pytest.fixture
def new_judge():
    made = []

    def make(**settings):
        made.append(Judge(**{"device": "simulator", "memory_bytes": 1 << 30} | settings))
        return made[-1]

    yield make
    for item in made:
        item.close()


@pytest.fixture(scope="session")
def judge(template):
    made = Judge(template=template, device="simulator", deadline_s=20.0, memory_bytes=1 << 30)
    yield made
    made.close()


def _relu_candidate(forward=RELU_FORWARD, body=RELU_BODY, before=""):
    indented = "\n".join(f"        {line}" for line in forward.strip().splitlines())
    bodies = "\n        ".join(body.strip().splitlines())
    return before + RELU_KERNEL.format(forward=indented, body=bodies)


@pytest.fixture(scope="session")
def make_candidate():
    """An honest relu, or what it becomes by another forward, another kernel body or lines before it."""
    return _relu_candidate


@pytest.fixture(scope="session")
def make_problem():
    """The problem of `make_candidate`'s kernel, with the given inputs."""
    return lambda inputs="torch.randn(37, 61)": RELU_PROBLEM.format(inputs=inputs)
