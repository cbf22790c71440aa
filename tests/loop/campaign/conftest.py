from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from cutegen_nb.core.problem import Problem
from cutegen_nb.core.search.campaign import CampaignBudget, CampaignEntry, CampaignRecord
from cutegen_nb.core.session import Budget
from cutegen_nb.loop.campaign.campaign import Campaign, CampaignEnding, CampaignRules
from cutegen_nb.loop.campaign.variant_run import CampaignProblem, VariantRun
from cutegen_nb.loop.campaign.variants import Variant
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.campaign_file import read_campaign, write_campaign
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

GAINS = {"a": 1.5, "b": 1.3, "c": 0.8}


@dataclass
class Seen:
    """Observer that keeps what it is told."""

    told: list[tuple[str, ...]] = field(default_factory=list)

    def begun(self, item: CampaignProblem, variant: Variant) -> None:
        self.told.append(("begun", item.name, variant.name))

    def round_finished(self, session, item) -> None:
        self.told.append(("round", session.name, str(item.number)))

    def ended(self, entry: CampaignEntry, run: VariantRun, session) -> None:
        self.told.append(("ended", entry.name, entry.state.value))

    def of(self, kind: str) -> list[tuple[str, ...]]:
        return [item[1:] for item in self.told if item[0] == kind]


@dataclass
class Played:
    """Outcome of a campaign's run."""

    ending: CampaignEnding | None
    records: dict[str, CampaignRecord]
    seen: Seen
    author: LandscapeAuthor

    @property
    def states(self) -> dict[str, str]:
        return {entry.name: entry.state.value for entry in self.records[""].entries}

    def sentence(self, name: str) -> str:
        found = self.records[""].entry_of(name)
        return found.sentence if found else ""


def problem(name: str, note: str = "") -> CampaignProblem:
    made = Problem(
        name=name,
        source=f"{examples.RELU_SOURCE}# {name} {note}\n",
        form=examples.relu_problem().form,
        path=f"{name}.py",
    )
    return CampaignProblem(name=name, file=f"{name}.py", problem=made)


@pytest.fixture
def problem_named() -> Callable[..., CampaignProblem]:
    """Function that makes a problem; with a note its text differs."""
    return problem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "campaign"


def run_campaign(  # noqa: PLR0913 - a campaign's parts, by name
    folder: Path,
    problems,
    *,
    author=LandscapeAuthor,
    evaluator=LandscapeEvaluator,
    variants=("",),
    budget=None,
    total=None,
    again=False,
    observer=None,
    keep=write_campaign,
) -> Played:
    """Run a campaign to its end, as the command does: its stores and records are files."""
    landscape = Landscape(menu=strategies_named(list(GAINS)), time_ms=additive(GAINS))
    seen, writer = observer or Seen(), author(landscape)
    effects = Effects(
        author=writer,
        evaluator=evaluator(landscape),
        approver=AutoApprover(),
        clock=FixedClock(),
        library=shipped_library(),
        progress=lambda text: None,
    )
    rules = CampaignRules(
        budget=budget or Budget(rounds=3),
        total=total or CampaignBudget(),
        replan=lambda plan: plan,
        again=again,
    )
    with ExitStack() as stores:
        runs = []
        for name in variants:
            where = folder / name
            store = stores.enter_context(SqliteStore(where))
            record = read_campaign(where) or CampaignRecord(
                name="campaign", created_at="", settings={}, budgets={}, environment={}
            )
            runs.append(
                VariantRun(
                    variant=Variant(name=name),
                    store=store,
                    record=record,
                    keep=lambda kept, where=where: keep(where, kept),
                )
            )
        made = Campaign(runs=runs, effects=effects, rules=rules, observer=seen)
        ending = asyncio.run(made.run(problems))
    found = {name: read_campaign(folder / name) or replace(runs[0].record, entries=()) for name in variants}
    return Played(ending, found, seen, writer)


@pytest.fixture
def campaign(folder: Path) -> Callable[..., Played]:
    """Function that runs a campaign in the test's folder."""
    return partial(run_campaign, folder)


@pytest.fixture
def session_of(folder: Path):
    """Function that reads a stored session of the campaign."""

    def load(name: str, variant: str = ""):
        with SqliteStore(folder / variant, writable=False) as store:
            return store.load(name) if name in store.names() else None

    return load
