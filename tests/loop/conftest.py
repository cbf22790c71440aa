from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import AuthorError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.ports import Approver
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Reply
from cutegen_nb.core.session import Budget, Plan, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel


@dataclass
class Stage:
    """A loop with a scripted model, recorded evaluations and a real store."""

    model: ScriptedModel
    effects: Effects
    store: SqliteStore
    progress: list[str]

    def run(self, rounds: int = 6, repairs: int = 2, plan: Plan | None = None) -> Session:
        async def play() -> Session:
            session = await open_session(
                examples.relu_problem(),
                self.effects,
                self.store,
                Budget(rounds=rounds),
                plan=lambda _: plan or Plan(),
            )
            return await run_session(session, self.effects, self.store, repairs=repairs)

        return asyncio.run(play())


def answer(mark: str) -> str:
    return f"Rationale: {mark}.\nPredicted effect: none.\n```python\n{examples.kernel_source(mark)}```\n"


@pytest.fixture
def stage(tmp_path: Path):
    stores: list[SqliteStore] = []

    def make(  # noqa: PLR0913 - what a stage is made of, most of it by name
        answers: Iterable[str | Reply | AuthorError],
        found: Mapping[str, Evaluation],
        *,
        menu: tuple[Strategy, ...] | None = None,
        approver: Approver | None = None,
        closer: Mapping[str, Evaluation] | None = None,
        counted: Mapping[str, Profile] | None = None,
        device: Device | None = None,
    ) -> Stage:
        model = ScriptedModel(answers, menu=examples.strategies() if menu is None else menu)
        progress: list[str] = []
        evaluations, above, counters = (
            {source_digest(examples.kernel_source(mark)): value for mark, value in given.items()}
            for given in (found, closer or {}, counted or {})
        )
        effects = Effects(
            author=model,
            evaluator=RecordedEvaluator(
                examples.relu_facts(), device or examples.simulated_device(), evaluations, above, counters
            ),
            approver=approver or AutoApprover(),
            clock=FixedClock(step_s=1.0),
            library=shipped_library(),
            progress=progress.append,
        )
        for store in stores:
            store.close()
        stores.append(SqliteStore(tmp_path / ".cutegen"))
        return Stage(model, effects, stores[-1], progress)

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def reply_with():
    return answer
