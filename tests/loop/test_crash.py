"""A whole scripted session, killed at random moments and taken up again."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.lineage import parent_digest
from cutegen_nb.loop.round import Effects
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import FixedClock, RecordedEvaluator, ScriptedModel, examples

ROOT = Path(__file__).parents[2]
ROUNDS = 30
MENU = tuple(Strategy(name=f"s{number}", statement="Do it.") for number in range(ROUNDS))


class AnswersByRound(ScriptedModel):
    """Says the same in the same round, however often the process was started."""

    async def write(self, prompt, session, progress) -> Reply:
        await asyncio.sleep(0.005)
        source = examples.kernel_source(f"round {len(session.rounds)}")
        return Reply(text=f"```python\n{source}```", usage=Usage())


def sectors(number: int) -> int:
    """Every third round is better than all before it."""
    return 10_000 - 100 * number if number % 3 == 0 else 20_000


def play(folder: Path) -> Session:
    evaluations = {
        source_digest(examples.kernel_source(f"round {number}")): examples.passed(sectors(number))
        for number in range(ROUNDS)
    }
    effects = Effects(
        author=AnswersByRound([], menu=MENU),
        evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), evaluations),
        approver=AutoApprover(),
        clock=FixedClock(),
        library=shipped_library(),
        progress=lambda text: None,
    )

    async def go() -> Session:
        with SqliteStore(folder) as store:
            session = await open_session(examples.relu_problem(), effects, store, Budget(rounds=ROUNDS))
            return await run_session(session, effects, store)

    return asyncio.run(go())


def test_a_killed_session_goes_on_with_the_right_parent_and_ends_as_an_undisturbed_one(tmp_path):
    undisturbed = play(tmp_path / "a")
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from pathlib import Path\nfrom test_crash import play\nplay(Path({str(tmp_path / 'b')!r}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    moments = random.Random(11)
    killed = 0
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", code], env=environment)
        while not (tmp_path / "b" / "sessions.sqlite").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.05, 0.4))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL

    resumed = play(tmp_path / "b")

    assert killed >= 1
    assert resumed == undisturbed
    best = resumed.rounds[0].candidate
    for item in resumed.rounds[1:]:
        assert parent_digest(item) == best.digest
        best = item.candidate if item.approved else best
