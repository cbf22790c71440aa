"""Checks of the harness's integrity: changes that a candidate could make around its own evaluation."""

from __future__ import annotations

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.catalog.check import Check

_INTERCEPTION = "cutegen_nb.evaluator.observe.dispatch_watch"

HARNESS = Check(
    name="harness unchanged",
    protocol="I4",
    tier=Tier.A,
    stops="a patched comparison, clock or event",
    cost="free",
    where="cutegen_nb.evaluator.trial.tampering",
)

SETTINGS = Check(
    name="global settings put back",
    protocol="I6",
    tier=Tier.A,
    stops="TF32 or a default dtype switched on for the reference; a baseline made slow",
    cost="free",
    decides=False,
    where="cutegen_nb.evaluator.problem.torch_settings",
)

THREADS = Check(
    name="no new threads",
    protocol="I7",
    tier=Tier.A,
    stops="work in a thread, outside the clock",
    cost="free",
    decides=False,
    where=_INTERCEPTION,
)

OUTSIDE = Check(
    name="values judged outside the candidate's process",
    protocol="I9, W12",
    tier=Tier.B,
    stops="a verdict forged or a comparison patched inside; a kernel that is right only where it is judged",
    cost="a second: two processes, one of which compiles; half a minute at 6 GiB a tensor",
    where="cutegen_nb.evaluator.isolated.exchange",
)
