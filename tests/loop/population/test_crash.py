"""A population that is killed at random moments and at chosen places, and taken up again.

Its epochs go on with the slots that are missing: whatever was killed ends as an undisturbed session does.
"""

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
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.errors import Declined, StoreError
from cutegen_nb.core.round import Action, Decision, Epoch, Round
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.population.run import refine
from cutegen_nb.loop.session import open_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.landscape import (
    Landscape,
    LandscapeAuthor,
    LandscapeEvaluator,
    additive,
    strategies_named,
)

ROOT = Path(__file__).parents[3]
LONG = bool(os.environ.get("CUTEGEN_LONG"))
KILLS = 50 if LONG else 5
POPULATION, EPOCHS = 3, 4
ROUNDS = 1 + POPULATION * EPOCHS
GAINS = {"a": 1.5, "b": 1.49, "c": 0.8, "d": 1.2, "e": 1.1, "f": 0.9, "g": 1.3, "h": 1.05}
OUTSIDE, INSIDE = 0, 1

pytestmark = pytest.mark.slow


class Slow(LandscapeAuthor):
    """Author whose requests take a while, so that a kill finds them under way."""

    async def write(self, prompt, session, progress):
        await asyncio.sleep(0.003)
        return await super().write(prompt, session, progress)


class Decides(AutoApprover):
    """Person who pins a kernel, forbids a strategy and writes one at the gate of the second epoch."""

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:
        # Slots that run side by side may end in another order, so that their numbers differ.
        third = next(item for item in session.rounds if item.slot and item.slot.number == 3)
        made = (
            (Action.PIN, f"r{third.number}"),
            (Action.FORBID, "f"),
            (Action.REQUEST, "mine: Do it my way."),
        )
        if draft.number == 2 and len(draft.decisions) < len(made):
            action, edited = made[len(draft.decisions)]
            return Decision(gate="epoch", action=action, by="person:ada", edited=edited)
        return await super().review_epoch(session, draft)


class WatchedStore(SqliteStore):
    """Store that says when it is inside a transaction, and stays there long enough to be hit."""

    def __init__(self, folder: Path, here: Callable[[str], None]) -> None:
        self._here = here
        super().__init__(folder)

    def _insert_round(self, session_name: str, finished: Round) -> None:
        super()._insert_round(session_name, finished)
        self._here(f"inside append {finished.number}")

    def _insert_epoch(self, session_name: str, finished: Epoch) -> None:
        super()._insert_epoch(session_name, finished)
        self._here(f"inside epoch {finished.number}")

    def append(self, session_name: str, finished: Round) -> None:
        super().append(session_name, finished)
        self._here(f"after append {finished.number}")

    def append_epoch(self, session_name: str, finished: Epoch) -> None:
        super().append_epoch(session_name, finished)
        self._here(f"after epoch {finished.number}")

    def stop(self, session_name: str, reason: str) -> None:
        self._here("before stop" if reason else "before going on")
        super().stop(session_name, reason)


def effects() -> Effects:
    landscape = Landscape(menu=strategies_named(list(GAINS)), time_ms=additive(GAINS))
    return Effects(
        author=Slow(landscape),
        evaluator=LandscapeEvaluator(landscape),
        approver=Decides(),
        clock=FixedClock(),
        library=shipped_library(),
        progress=lambda text: None,
    )


def play(folder: Path, here: Callable[[str], None] = lambda place: None, workers: int = 1) -> Session:
    chosen = effects()

    async def go() -> Session:
        with WatchedStore(folder, here) as store:
            session = await open_session(
                examples.relu_problem(),
                chosen,
                store,
                Budget(rounds=100, epochs=EPOCHS),
                plan=lambda plan: replace(plan, population=POPULATION),
            )
            return await refine(session, chosen, store, workers=workers, slots=workers)

    return asyncio.run(go())


def stored(folder: Path) -> Session | None:
    """Session that a process which only reads finds; None where the first transaction was not committed."""
    try:
        with SqliteStore(folder, writable=False) as store:
            names = store.names()
            assert len(names) <= 1, "a session was begun twice"
            return store.load(names[0]) if names else None
    except StoreError as error:
        assert "no sessions in" in str(error)  # noqa: PT017 - whatever else it says is a failure
        return None


def killer(folder: Path, kills: int, seed: int, workers: int) -> None:
    """Play in forks of this process, which has imported everything, and kill each at a random moment.

    Writes a line a kill: the store's folder, whether it fell inside a transaction, and the rounds and epochs
    that were kept.
    """
    place = mmap.mmap(-1, 1)

    def here(name: str) -> None:
        place[0] = INSIDE if name.startswith("inside") else OUTSIDE
        if place[0] == INSIDE:
            time.sleep(0.004)

    start = time.monotonic()
    play(folder / "whole", here, workers)
    whole_s = time.monotonic() - start
    moments, session, done = random.Random(seed), 0, 0
    while done < kills:
        child = os.fork()
        if child == 0:
            play(folder / str(session), here, workers)
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
            "epochs": len(kept.epochs) if kept else 0,
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


def by_slot(session: Session) -> dict[tuple[int, int], tuple[object, ...]]:
    """Move, parents and kernel of each slot; slots that run side by side may end in another order."""
    return {
        (item.slot.epoch, item.slot.number): (
            item.slot.move,
            item.slot.parents,
            item.title,
            item.candidate and item.candidate.digest,
        )
        for item in session.rounds
        if item.slot
    }


class Silent(Slow):
    """Author that has nothing more to write."""

    async def write(self, prompt, session, progress):
        raise Declined("nothing comes to mind")


class Killed(Exception):
    """End of a process, as far as a session notices it."""


def test_slots_from_before_a_kill_count_for_their_epoch(tmp_path, monkeypatch):
    """Two slots of the second epoch brought kernels; that the third brings none ends no session."""

    def here(place):
        if place == "after append 5":
            raise Killed

    with pytest.raises(Killed):
        play(tmp_path, here)
    assert len(stored(tmp_path).rounds) == 6
    monkeypatch.setitem(effects.__globals__, "Slow", Silent)

    resumed = play(tmp_path)

    assert len(resumed.epochs) == 3
    assert resumed.stopped.startswith("no slot of epoch 3 brought a kernel: ")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Session:
    session = play(tmp_path_factory.mktemp("undisturbed"))
    assert len(session.rounds) == ROUNDS
    assert session.stopped == f"the budget of {EPOCHS} epochs is spent"
    assert [decision.action for decision in session.epochs[1].decisions] == [
        Action.PIN, Action.FORBID, Action.REQUEST, Action.APPROVE,
    ]  # fmt: skip
    return session


@pytest.mark.first(1)
@pytest.mark.sampled
@pytest.mark.parametrize("workers", [1, POPULATION])
def test_populations_killed_at_random_moments_end_as_undisturbed_ones(tmp_path, undisturbed, workers):
    done = in_a_process(f"test_crash.killer(Path({str(tmp_path)!r}), {KILLS}, 11, {workers})")
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(kills) == KILLS
    if LONG:
        assert any(kill["inside"] for kill in kills)
        assert len({kill["rounds"] for kill in kills}) > ROUNDS // 2, (
            "the moments all fell into the same rounds"
        )
    kept: dict[str, tuple[int, int]] = {}
    for kill in kills:
        now = (kill["rounds"], kill["epochs"])
        before = kept.get(kill["folder"], (0, 0))
        assert now[0] >= before[0], "a kill took a round that was stored"
        assert now[1] >= before[1], "a kill took an epoch that was stored"
        kept[kill["folder"]] = now
    for folder in kept:
        found = stored(tmp_path / folder)
        resumed = play(tmp_path / folder, workers=workers)
        if found is not None:
            assert resumed.rounds[: len(found.rounds)] == found.rounds
            assert resumed.epochs[: len(found.epochs)] == found.epochs
        assert [item.number for item in resumed.rounds] == list(range(ROUNDS))
        assert by_slot(resumed) == by_slot(undisturbed)
        assert [epoch.members for epoch in resumed.epochs] == [epoch.members for epoch in undisturbed.epochs]
        assert resumed.best.candidate.digest == undisturbed.best.candidate.digest
        if workers == 1:
            assert resumed == undisturbed


@pytest.mark.parametrize(
    ("place", "rounds", "epochs"),
    [
        pytest.param("inside append 5", 5, 1, marks=pytest.mark.long),
        ("after append 6", 7, 1),
        ("inside epoch 2", 7, 1),
        pytest.param("after epoch 2", 7, 2, marks=pytest.mark.long),
        *(
            pytest.param(*row, marks=pytest.mark.long)
            for row in (
                ("inside append 0", 0, 0),
                ("after append 0", 1, 0),
                ("after append 1", 2, 0),
                ("inside epoch 1", 4, 0),
                (f"after epoch {EPOCHS}", ROUNDS, EPOCHS),
                ("before stop", ROUNDS, EPOCHS),
            )
        ),
    ],
)
def test_a_kill_inside_or_right_after_a_transaction_loses_the_slot_or_the_gate_in_flight_alone(
    tmp_path, undisturbed, place, rounds, epochs
):
    folder = tmp_path / "store"
    done = in_a_process(
        f"at = lambda name: name == {place!r} and os.kill(os.getpid(), signal.SIGKILL)\n"
        f"test_crash.play(Path({str(folder)!r}), at)"
    )
    assert done.returncode == -signal.SIGKILL, done.stderr

    kept = stored(folder)
    assert kept.rounds == undisturbed.rounds[:rounds]
    assert kept.epochs == undisturbed.epochs[:epochs]
    assert play(folder) == undisturbed


def test_resuming_a_finished_population_changes_nothing(tmp_path, undisturbed):
    for _ in range(2):
        assert play(tmp_path) == undisturbed
