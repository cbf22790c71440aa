"""A replay repeats the recorded rounds, whatever today's rules of stages and menus would choose."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy
from cutegen_nb.loop.menu import offered
from cutegen_nb.loop.replaying import RecordedDecisions, replay_session
from cutegen_nb.testing import examples

TIME = Strategy(
    name="more-ctas",
    statement="More of them.",
    effects=(ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),),
)


def test_a_round_that_no_rule_would_offer_today_is_replayed_as_it_was(stage, reply_with):
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

    effects = replace(
        loop.effects,
        author=ReplayAuthor(recorded),
        evaluator=RecordedEvaluations(recorded),
        approver=RecordedDecisions(recorded),
    )
    again = asyncio.run(replay_session(recorded, effects, loop.store, "again"))
    assert [(item.stage, item.strategy, item.stage_because) for item in again.rounds] == [
        (item.stage, item.strategy, item.stage_because) for item in recorded.rounds
    ]
    assert again.best.candidate.digest == last.candidate.digest
