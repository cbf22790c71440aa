from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Action, Decision, Epoch, Round
from cutegen_nb.core.session import Budget, Plan, Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.population.run import refine
from cutegen_nb.loop.population.slot_progress import SlotProgress
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
    carried_out,
    strategies_named,
)


class DecidesAtEpochs(AutoApprover):
    """Policy that makes given decisions at the gates of epochs, by number, and then approves."""

    def __init__(self, decisions: dict[int, list[tuple[Action, str]]]) -> None:
        self._decisions = {number: list(made) for number, made in decisions.items()}
        self.drafts: list[Epoch] = []

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:
        self.drafts.append(draft)
        left = self._decisions.get(draft.number)
        if left:
            action, edited = left.pop(0)
            return Decision(gate="epoch", action=action, by="person:ada", edited=edited)
        return await super().review_epoch(session, draft)


@dataclass
class Evolution:
    """A population on a landscape with a real store."""

    landscape: Landscape
    effects: Effects
    folder: Path
    progress: list[str]
    slots: list[tuple[SlotProgress, ...]] = field(default_factory=list)
    seen: list[Round] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    problem: Problem = field(default_factory=examples.relu_problem)

    def run(  # noqa: PLR0913 - the settings of a run, most of them by name
        self,
        population: int = 3,
        epochs: int | None = 3,
        *,
        rounds: int = 100,
        workers: int = 1,
        slots: int = 0,
        repairs: int = 2,
        plan: Plan | None = None,
        budget: Budget | None = None,
    ) -> Session:
        async def play() -> Session:
            with SqliteStore(self.folder) as store:
                session = await open_session(
                    self.problem,
                    self.effects,
                    store,
                    budget or Budget(rounds=rounds, epochs=epochs),
                    plan=lambda _: replace(plan or Plan(), population=population),
                )
                return await refine(
                    session,
                    self.effects,
                    store,
                    workers=workers,
                    slots=slots or workers,
                    repairs=repairs,
                    on_round=lambda _, item: self.seen.append(item),
                    on_slots=self.slots.append,
                    on_epoch=lambda _, epoch: self.epochs.append(epoch),
                )

        return asyncio.run(play())

    def stored(self) -> Session:
        with SqliteStore(self.folder, writable=False) as store:
            return store.load(self.problem.name)


def landscape_of(gains: dict[str, float], **members: object) -> Landscape:
    menu = strategies_named([name for name in gains if name not in members.get("invents", ())])
    return Landscape(menu=menu, time_ms=additive(gains), **members)


@pytest.fixture
def landscape() -> Callable[..., Landscape]:
    """Function that makes a landscape of strategies with their gains."""
    return landscape_of


@pytest.fixture
def evolve(tmp_path: Path) -> Callable[..., Evolution]:
    """Function that prepares a population on a landscape; it takes an author, an evaluator or an approver."""

    def make(landscape: Landscape, **others: object) -> Evolution:
        progress: list[str] = []
        parts = {
            "author": LandscapeAuthor(landscape),
            "evaluator": LandscapeEvaluator(landscape),
            "approver": AutoApprover(),
            **others,
        }
        effects = Effects(clock=FixedClock(), library=shipped_library(), progress=progress.append, **parts)
        return Evolution(landscape, effects, tmp_path / ".cutegen", progress)

    return make


@pytest.fixture
def at_epochs() -> type[DecidesAtEpochs]:
    return DecidesAtEpochs


@pytest.fixture
def does() -> Callable[[Round], set[str]]:
    """Function that names the strategies that the kernel of a round carries out."""

    def names(item: Round) -> set[str]:
        return set(carried_out(item.candidate.source)) if item.candidate else set()

    return names
