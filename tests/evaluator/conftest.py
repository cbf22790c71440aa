"""Problems, candidates and one warm evaluator for the tests of this folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.evaluator import KernelEvaluator

HERE = Path(__file__).parent


class Judge:
    """An evaluator driven from synchronous tests; each call has an event loop of its own.

    Problems and candidates are given by the name of their file, or as source.
    """

    def __init__(self, **settings):
        self.evaluator = KernelEvaluator(**settings)
        self.stages = []

    @staticmethod
    def problem(given):
        source = given if "\n" in given else (HERE / "problems" / f"{given}.py").read_text()
        return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH)

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

    def __call__(self, problem, candidate, tier=Tier.A):
        self.stages.clear()
        return asyncio.run(
            self.evaluator.evaluate(
                self.problem(problem), self.candidate(candidate), self.stages.append, tier
            )
        )

    def facts(self, problem):
        return asyncio.run(self.evaluator.facts(self.problem(problem), self.stages.append))

    @property
    def template(self):
        return self.evaluator._workers.server.process_id

    def close(self):
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
def judge():
    os.environ["SOME_API_KEY"] = "secret"  # for the test that no candidate sees it
    made = Judge(device="simulator", deadline_s=20.0, memory_bytes=1 << 30)
    yield made
    made.close()
