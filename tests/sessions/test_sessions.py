"""Sessions written by hand through the mailbox replay to the same rounds, and their kernels are right today.

Each bundle was recorded by ``record.py``, which says when to record it again.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.codec import encode
from cutegen_nb.core.session import Session
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.store.bundle import read_bundle
from cutegen_nb.store.sqlite import SqliteStore

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUNDLES = sorted(path.stem for path in HERE.glob("*.cutegen"))

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]


def cutegen(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as a person without a key and without a GPU types it."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment |= {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "cutegen_nb", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.fixture(
    scope="module",
    params=[BUNDLES[0], *(pytest.param(name, marks=pytest.mark.long) for name in BUNDLES[1:])],
)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def recorded(name: str) -> Session:
    return read_bundle(HERE / f"{name}.cutegen")


@pytest.fixture(scope="module")
def replayed(name: str, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp(name)
    done = cutegen(folder, "replay", str(HERE / f"{name}.cutegen"), "--store", "s")
    assert done.returncode == 0, done.stdout + done.stderr
    with SqliteStore(folder / "s", writable=False) as store:
        return store.load(f"{name}_replay")


def rounds_of(session: Session) -> list[tuple[object, ...]]:
    """What makes a round the same round: what was tried, asked, written, found and decided."""
    return [
        (
            item.stage,
            item.strategy.name if item.strategy else "",
            [(attempt.purpose, attempt.candidate and attempt.candidate.digest) for attempt in item.attempts],
            item.evaluation and item.evaluation.label,
            item.comparison and item.comparison.relation,
            [(decision.gate, decision.action) for decision in item.decisions],
        )
        for item in session.rounds
    ]


def test_a_session_replays_to_the_same_rounds(recorded, replayed):
    assert rounds_of(replayed) == rounds_of(recorded)
    assert replayed.stopped == recorded.stopped
    assert replayed.best.candidate.digest == recorded.best.candidate.digest


def test_a_reference_became_an_approved_kernel_with_a_repair_on_the_way(recorded):
    purposes = [attempt.purpose for item in recorded.rounds for attempt in item.attempts]
    assert {"generate", "diagnose", "repair", "optimise"} <= set(purposes)
    assert recorded.author == "manual"
    assert recorded.best.evaluation.passed
    assert recorded.best.number > 0


def test_the_problem_in_the_bundle_is_the_file_beside_it(name, recorded):
    assert recorded.problem.source == (HERE / "problems" / f"{name}.py").read_text()


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    """Verdicts of today's evaluator on the best kernels, all from one evaluator: each start takes seconds."""

    async def judge() -> dict[str, str]:
        evaluator = KernelEvaluator(device="simulator")
        try:
            found = {}
            for name in BUNDLES:
                session = read_bundle(HERE / f"{name}.cutegen")
                judged = await evaluator.evaluate(session.problem, session.best.candidate, lambda _: None)
                found[name] = judged.label
            return found
        finally:
            await evaluator.close()

    return asyncio.run(judge())


@pytest.mark.long
def test_the_best_kernel_is_right_at_tier_a_today(name, verdicts):
    assert verdicts[name] == "PASSED"


def test_a_bundle_says_nothing_of_the_machine_it_was_recorded_on(recorded):
    said = json.dumps(encode(recorded))
    assert str(ROOT) not in said
    assert "/tmp/" not in said


def test_a_session_of_an_older_version_has_defaults_for_what_came_since_and_is_stored_anew(
    name, recorded, tmp_path
):
    with zipfile.ZipFile(HERE / f"{name}.cutegen") as bundle:
        body = json.loads(bundle.read("session.json"))
    # None of the bundles knows of populations, of estimates or of the knowledge base.
    assert "epochs" not in body
    assert not {"slot", "aligned", "chosen_because"} & set(body["rounds"][-1])
    assert (recorded.epochs, recorded.plan.population) == ((), 1)
    assert [(item.slot, item.aligned, item.chosen_because) for item in recorded.rounds] == [
        (None, None, "")
    ] * len(recorded.rounds)
    with SqliteStore(tmp_path) as store:
        store.create(replace(recorded, stopped=""))
        assert store.load(recorded.name) == replace(recorded, stopped="")
