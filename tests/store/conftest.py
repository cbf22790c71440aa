"""Records of the knowledge base."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.strategy import Alignment, Optimisation, Strategy
from cutegen_nb.testing import examples


@pytest.fixture
def record():
    """Maker of a record of a ReLU; its arguments change the record."""

    def made(name="vectorise", **changed):
        plain = StrategyRecord(
            strategy=Strategy(name=name, statement="Do it.", absent=(Optimisation.VECTORS,)),
            aligned=Alignment(statement="It does “128 bits” a thread – 🙂.", by="model"), line=(),
            problem=problem_key(examples.relu_facts()), problem_digest="p", parent_digest="a",
            candidate_digest="b", architecture="sm_90a", device="NVIDIA H200", bound=None,
            parent_in_force=(Optimisation.COALESCED,), seconds=1e-3, speedup=2.0, total_speedup=3.0,
            estimated=False, session="relu", session_at="2026-01-01T00:00:00+00:00", revision="r1",
            recorded_at="2026-01-01T00:00:00+00:00", versions={"torch": "2.9"},
        )  # fmt: skip
        return replace(plain, **changed)

    return made
