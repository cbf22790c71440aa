"""Results of problems of a campaign."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.search.campaign import ProblemState
from cutegen_nb.core.timing import BaselineTiming


@pytest.fixture
def solved():
    """Maker of a problem that was solved on a GPU, with this speedup over eager."""

    def made(name="19_ReLU", speedup=2.0, **changed):
        baseline = BaselineTiming(
            name="eager", median_ms=2.0, speedup=speedup, speedup_low=speedup * 0.99,
            speedup_high=speedup * 1.01,
        )  # fmt: skip
        plain = ProblemResult(
            name=name, file=f"level1/{name}.py", state=ProblemState.FINISHED, verdict="PASSED", correct=True,
            rounds=3, revision="r2", latency_ms=2.0 / speedup, baselines=(baseline,), sol_fraction=0.5,
            tokens=1000, dollars=0.25, gpu_s=10.0, seconds=60.0, workload_class="element-wise",
        )  # fmt: skip
        return replace(plain, **changed)

    return made


@pytest.fixture
def estimated(solved):
    """Maker of a problem that was solved on the simulator, with this estimated time."""

    def made(name="19_ReLU", seconds=1e-3, **changed):
        found = Estimate(
            target="NVIDIA H200", seconds=seconds, seconds_low=seconds, seconds_high=seconds, bound="DRAM"
        )
        without = {"latency_ms": None, "baselines": (), "sol_fraction": None, "gpu_s": 0.0}
        with_estimate = {"estimate": found, "estimated_sol_fraction": 0.8}
        return solved(name, **{**without, **with_estimate, **changed})

    return made


@pytest.fixture
def failed():
    """Maker of a problem without a correct kernel."""

    def made(name="99_Hard", state=ProblemState.FINISHED, **changed):
        plain = ProblemResult(name=name, file=f"level1/{name}.py", state=state, rounds=1, seconds=30.0)
        return replace(plain, **changed)

    return made
