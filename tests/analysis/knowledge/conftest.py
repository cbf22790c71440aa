"""Records of the knowledge base, as one session left them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.knowledge import ProblemKey, Regime, StrategyRecord
from cutegen_nb.core.strategy import Alignment, Strategy


@pytest.fixture
def softmax_key():
    return ProblemKey(
        workload_class=WorkloadClass.SOFTMAX, parts=(), operators=("_softmax",), dtype="float32",
        regime=Regime.MANY_LONG_ROWS,
    )  # fmt: skip


@pytest.fixture
def h200():
    return Device(
        kind=DeviceKind.GPU, name="NVIDIA H200", architecture="sm_90a", bandwidth_bytes_per_s=4.8e12,
        peak_flops={}, source="",
    )  # fmt: skip


@pytest.fixture
def record(softmax_key):
    """Maker of a record of a strategy on a softmax; its arguments change the record."""

    def made(name="vectorise", speedup=1.5, *, problem=softmax_key, **changed):
        strategy = Strategy(name=name, statement=f"Do {name}.")
        plain = StrategyRecord(
            strategy=strategy, aligned=Alignment(statement=f"It does {name}", by="model"), line=(),
            problem=problem, problem_digest="problem", parent_digest=f"parent of {name}",
            candidate_digest=f"{name} {speedup}", architecture="sm_90a", device="NVIDIA H200", bound=None,
            parent_in_force=(), seconds=1e-3, speedup=speedup, total_speedup=speedup, estimated=False,
            session="softmax", session_at="2026-01-01T00:00:00+00:00", revision="r1",
            recorded_at="2026-01-01T00:01:00+00:00",
        )  # fmt: skip
        return replace(plain, **changed)

    return made
