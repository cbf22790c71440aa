"""A replay repeats the recorded rounds, whatever today's rules of stages and menus would choose."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy
from cutegen_nb.loop.menu import offered
from cutegen_nb.loop.replaying import RecordedDecisions, replay_session
from cutegen_nb.store.bundle import read_bundle, write_bundle
from cutegen_nb.testing import examples

TIME = Strategy(
    name="more-ctas",
    statement="More of them.",
    effects=(ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),),
)


def replayed(loop, recorded, tmp_path):
    """Replay of a session, from the bundle that it is exported as."""
    bundle = tmp_path / "recorded.cutegen"
    write_bundle(recorded, bundle, {})
    recorded = read_bundle(bundle)
    effects = replace(
        loop.effects,
        author=ReplayAuthor(recorded),
        evaluator=RecordedEvaluations(recorded),
        approver=RecordedDecisions(recorded),
    )
    return asyncio.run(replay_session(recorded, effects, loop.store, "again"))


def test_a_round_that_no_rule_would_offer_today_is_replayed_as_it_was(stage, reply_with, tmp_path):
    loop = stage(
        [reply_with("first"), reply_with("second")],
        {"first": examples.passed(1000), "second": examples.passed(900)},
        menu=(Strategy(name="tiles", statement="Tiles."),),
    )
    recorded = loop.run(rounds=2)
    last = recorded.rounds[1]
    # As a version with other rules would have recorded it.
    attempts = tuple(
        replace(item, prompt=replace(item.prompt, strategy=TIME, stage=Stage.PROFILE))
        for item in last.attempts
    )
    last = replace(
        last, strategy=TIME, stage=Stage.PROFILE, stage_because="by other rules", attempts=attempts
    )
    recorded = replace(recorded, rounds=(recorded.rounds[0], last))
    before = replace(recorded, rounds=recorded.rounds[:1])
    assert offered(before, (TIME,), recorded.rounds[0], Stage.PROFILE) == ()

    again = replayed(loop, recorded, tmp_path)
    assert [(item.stage, item.strategy, item.stage_because) for item in again.rounds] == [
        (item.stage, item.strategy, item.stage_because) for item in recorded.rounds
    ]
    assert again.best.candidate.digest == last.candidate.digest


def test_a_kernel_that_came_with_its_diagnosis_is_replayed_from_a_bundle(stage, reply_with, tmp_path):
    loop = stage(
        [reply_with("broken"), reply_with("cured")],
        {"broken": examples.failed(Verdict.WRONG_VALUES, "Wrong."), "cured": examples.passed(1000)},
        menu=(),
    )
    recorded = loop.run(rounds=1)
    again = replayed(loop, recorded, tmp_path)
    assert [item.purpose for item in again.rounds[0].attempts] == ["generate", "diagnose"]
    assert again.rounds[0].attempts[1].evaluation.passed
    assert again.best.candidate.digest == recorded.best.candidate.digest


def test_code_in_a_diagnosis_that_was_recorded_as_words_is_replayed_as_words(stage, reply_with, tmp_path):
    """Sessions of earlier versions hold such diagnoses, each followed by a request for the repair."""
    loop = stage(
        [reply_with("broken"), "The tail.", reply_with("cured")],
        {"broken": examples.failed(Verdict.WRONG_VALUES, "Wrong."), "cured": examples.passed(1000)},
        menu=(),
    )
    recorded = loop.run(rounds=1)
    [made] = recorded.rounds
    first, diagnosis, repair = made.attempts
    told = replace(diagnosis.reply, text=reply_with("never judged"))
    earlier = replace(made, attempts=(first, replace(diagnosis, reply=told), repair))
    again = replayed(loop, replace(recorded, rounds=(earlier,)), tmp_path)
    assert [item.purpose for item in again.rounds[0].attempts] == ["generate", "diagnose", "repair"]
    assert again.best.candidate.digest == recorded.best.candidate.digest
