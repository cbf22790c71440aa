"""A whole scripted session, killed at random moments and taken up again."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.round import Reply, Round, Usage
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.lineage import parent_digest
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel

ROOT = Path(__file__).parents[2]
LONG = bool(os.environ.get("CUTEGEN_LONG"))
ROUNDS = 12
KILLS = 50 if LONG else 6
MENU = tuple(Strategy(name=f"s{number}", statement="Do it.") for number in range(ROUNDS))
OUTSIDE, INSIDE = 0, 1

pytestmark = pytest.mark.slow


class AnswersByRound(ScriptedModel):
    """Says the same in the same round, however often the process was started."""

    async def write(self, prompt, session, progress) -> Reply:
        await asyncio.sleep(0.005)
        source = examples.kernel_source(f"round {len(session.rounds)}")
        return Reply(text=f"```python\n{source}```", usage=Usage())


class WatchedStore(SqliteStore):
    """Says when it is inside a transaction, and stays there long enough to be hit."""

    def __init__(self, folder: Path, here: Callable[[str], None]) -> None:
        self._here = here
        super().__init__(folder)

    def _insert_round(self, session_name: str, finished: Round) -> None:
        super()._insert_round(session_name, finished)
        self._here(f"inside append {finished.number}")

    def append(self, session_name: str, finished: Round) -> None:
        super().append(session_name, finished)
        self._here(f"after append {finished.number}")

    def create(self, session: Session) -> None:
        super().create(session)
        self._here("after create")

    def stop(self, session_name: str, reason: str) -> None:
        self._here("before stop" if reason else "before going on")
        super().stop(session_name, reason)
        self._here("after stop" if reason else "after going on")


def sectors(number: int) -> int:
    """Every third round is better than all before it."""
    return 10_000 - 100 * number if number % 3 == 0 else 20_000


def effects() -> Effects:
    evaluations = {
        source_digest(examples.kernel_source(f"round {number}")): examples.passed(sectors(number))
        for number in range(ROUNDS + 1)
    }
    return Effects(
        author=AnswersByRound([], menu=MENU),
        evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), evaluations),
        approver=AutoApprover(),
        clock=FixedClock(),
        library=shipped_library(),
        progress=lambda text: None,
    )


def play(folder: Path, here: Callable[[str], None] = lambda place: None) -> Session:
    chosen = effects()

    async def go() -> Session:
        with WatchedStore(folder, here) as store:
            session = await open_session(examples.relu_problem(), chosen, store, Budget(rounds=ROUNDS + 1))
            return await run_session(session, chosen, store)

    return asyncio.run(go())


def stored(folder: Path) -> Session | None:
    """What a process that only reads finds; None where the first transaction was not committed."""
    try:
        with SqliteStore(folder, writable=False) as store:
            names = store.names()
            assert len(names) <= 1, "a session was begun twice"
            return store.load(names[0]) if names else None
    except StoreError as error:
        assert "no sessions in" in str(error)  # noqa: PT017 - whatever else it says is a failure
        return None


def killer(folder: Path, kills: int, seed: int) -> None:
    """Play in forks of this process, which has imported everything, and kill each at a random moment.

    Writes a line a kill: the store's folder, whether it fell inside a transaction, and the rounds kept.
    """
    place = mmap.mmap(-1, 1)

    def here(name: str) -> None:
        place[0] = INSIDE if name.startswith("inside") else OUTSIDE
        if place[0] == INSIDE:
            time.sleep(0.004)

    start = time.monotonic()
    play(folder / "whole", here)
    whole_s = time.monotonic() - start
    moments, session, done = random.Random(seed), 0, 0
    while done < kills:
        child = os.fork()
        if child == 0:
            play(folder / str(session), here)
            os._exit(0)
        time.sleep(moments.uniform(0, whole_s / 3))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            session += 1  # it was over before the moment came: the next one begins another
            continue
        done += 1
        kept = stored(folder / str(session))
        line = {
            "folder": str(session),
            "inside": place[0] == INSIDE,
            "rounds": len(kept.rounds) if kept else 0,
        }
        sys.stdout.write(json.dumps(line) + "\n")
        place[0] = OUTSIDE


def in_a_process(call: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from pathlib import Path\nimport os, signal\nimport test_crash\n{call}"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def check_parents(session: Session) -> None:
    best = session.rounds[0].candidate
    for item in session.rounds[1:]:
        assert parent_digest(item) == best.digest
        assert item.candidate.parents == (best.digest,)
        best = item.candidate if item.approved else best


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Session:
    session = play(tmp_path_factory.mktemp("undisturbed"))
    assert len(session.rounds) == ROUNDS + 1
    return session


@pytest.mark.sampled
def test_sessions_killed_at_random_moments_end_as_undisturbed_ones_with_the_right_parents(
    tmp_path, undisturbed
):
    done = in_a_process(f"test_crash.killer(Path({str(tmp_path)!r}), {KILLS}, 11)")
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(kills) == KILLS
    if LONG:
        assert any(kill["inside"] for kill in kills)
        assert len({kill["rounds"] for kill in kills}) > ROUNDS // 2, (
            "the moments all fell into the same rounds"
        )
    kept: dict[str, int] = {}
    for kill in kills:
        assert kill["rounds"] >= kept.get(kill["folder"], 0), "a kill took a round that was stored"
        kept[kill["folder"]] = kill["rounds"]
    for folder in kept:
        found = stored(tmp_path / folder)
        assert found is None or found.rounds == undisturbed.rounds[: len(found.rounds)]
        resumed = play(tmp_path / folder)
        assert resumed == undisturbed
        check_parents(resumed)


@pytest.mark.parametrize(
    ("place", "rounds"),
    [
        pytest.param("inside append 0", 0, marks=pytest.mark.long),
        ("inside append 4", 4),
        ("after append 4", 5),
        pytest.param("before stop", ROUNDS + 1, marks=pytest.mark.long),
        pytest.param("after create", 0, marks=pytest.mark.long),
        pytest.param("after append 0", 1, marks=pytest.mark.long),
        pytest.param("after stop", ROUNDS + 1, marks=pytest.mark.long),
    ],
)
def test_a_kill_inside_or_right_after_a_transaction_loses_the_round_in_flight_alone(
    tmp_path, undisturbed, place, rounds
):
    folder = tmp_path / "store"
    done = in_a_process(
        f"at = lambda name: name == {place!r} and os.kill(os.getpid(), signal.SIGKILL)\n"
        f"test_crash.play(Path({str(folder)!r}), at)"
    )
    assert done.returncode == -signal.SIGKILL, done.stderr

    assert stored(folder).rounds == undisturbed.rounds[:rounds]
    assert play(folder) == undisturbed


def test_resuming_again_and_again_changes_nothing(tmp_path, undisturbed):
    def die(name: str) -> None:
        if name == "after append 5":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, die)
    for _ in range(3):
        with SqliteStore(tmp_path) as store:
            opened = asyncio.run(
                open_session(examples.relu_problem(), effects(), store, Budget(rounds=ROUNDS + 1))
            )
            assert opened.rounds == undisturbed.rounds[:6]
            assert store.names() == (undisturbed.name,)

    for _ in range(2):
        assert play(tmp_path) == undisturbed
    assert stored(tmp_path).rounds == undisturbed.rounds
