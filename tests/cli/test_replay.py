"""The command that replays a recorded session."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from cutegen_nb.cli import main
from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.errors import Unreachable
from cutegen_nb.core.evaluation import Evaluation, Tier, Verdict
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.bundle import write_bundle
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel
from cutegen_nb.wiring import Settings, make_guide


def answer(mark: str) -> str:
    return f"Rationale: {mark}.\n```python\n{examples.kernel_source(mark)}```\n"


class Person(AutoApprover):
    """Edits the second round's kernel by hand, steers the third prompt, rejects the fourth revision."""

    async def review_prompt(self, session, prompt):
        if len(session.rounds) == 2 and "fewer barriers" not in prompt.user:
            return Decision(gate="prompt", action=Action.STEER, by="person:ada", reason="fewer barriers")
        return await super().review_prompt(session, prompt)

    async def review_revision(self, session, attempts, comparison):
        if len(session.rounds) == 1 and attempts[-1].purpose != "edit":
            edited = examples.kernel_source("by hand")
            return Decision(
                gate="revision", action=Action.EDIT, by="person:ada", reason="shorter", edited=edited
            )
        if len(session.rounds) == 3:
            return Decision(gate="revision", action=Action.REJECT, by="person:ada", reason="unreadable")
        return await super().review_revision(session, attempts, comparison)


FOUND = {
    "broken": examples.failed(Verdict.CRASHED, "It crashed.", line=3),
    "first": examples.passed(1000),
    "second": examples.passed(900),
    "by hand": replace(examples.passed(800), tier=Tier.B, duration_s=2.0),
    "third": examples.passed(600),
    "fourth": examples.passed(500),
}
ANSWERS = [
    "no code", answer("broken"), "the index is wrong", answer("first"),
    answer("second"), answer("third"), answer("fourth"), Unreachable("the server went away"),
]  # fmt: skip


@pytest.fixture
def store(tmp_path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / ".cutegen")) as opened:
        yield opened


@pytest.fixture
def recorded(store) -> Session:
    found: dict[str, Evaluation] = {
        source_digest(examples.kernel_source(mark)): value for mark, value in FOUND.items()
    }
    effects = Effects(
        author=ScriptedModel(ANSWERS, menu=examples.strategies(), name="openai:m"),
        evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), found),
        approver=Person(),
        clock=FixedClock(step_s=1.0),
        library=shipped_library(),
        progress=lambda _: None,
        guide=make_guide(Settings()),
    )

    async def play() -> Session:
        session = await open_session(examples.relu_problem(), effects, store, Budget(rounds=9))
        return await run_session(session, effects, store)

    return asyncio.run(play())


def test_the_command_replays_a_session_of_the_store_and_one_of_a_bundle(recorded, store, tmp_path, capsys):
    write_bundle(recorded, tmp_path / "relu.cutegen", {})
    store.close()
    folder = ["--store", str(tmp_path / ".cutegen")]

    assert main(["replay", "relu", *folder]) == 0
    told = capsys.readouterr()
    assert re.search(r"relu, recorded from 2026-\d\d-\d\d \d\d:\d\d:\d\d UTC on simulator", told.err)
    assert told.err.count("2026-") == 1, "the date stands in the first line alone"
    assert told.out.startswith("relu_replay: ")
    assert main(["replay", str(tmp_path / "relu.cutegen"), "--json", *folder]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["session"] == "relu_replay_2"
    assert len(found["rounds"]) == len(recorded.rounds)
    assert main(["replay", "nothing", *folder]) == 2
    assert "no session 'nothing'" in capsys.readouterr().err
