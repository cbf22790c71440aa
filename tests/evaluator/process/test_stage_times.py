"""Seconds of each stage of an evaluation, from its messages."""

from __future__ import annotations

from types import SimpleNamespace

from cutegen_nb.evaluator.process import stage_times


def test_each_stage_lasts_until_the_next_and_a_repeated_message_goes_on(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 6.0, 10.0])
    monkeypatch.setattr(stage_times, "time", SimpleNamespace(monotonic=lambda: next(now)))
    said = []
    stages = stage_times.Stages(said.append)
    for text in ("tracing", "running", "running", "timing"):
        stages(text)
    assert said == ["tracing", "running", "running", "timing"]
    assert stages.seconds() == (("starting", 1.0), ("tracing", 2.0), ("running", 3.0), ("timing", 4.0))
