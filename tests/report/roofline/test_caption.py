"""The caption names each roof's source."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.hardware.hierarchy import SHARED
from cutegen_nb.core.timing import Timing
from cutegen_nb.evaluator.process.device import simulated
from cutegen_nb.report.roofline.caption import caption
from cutegen_nb.report.roofline.plot import describe

A100 = simulated("sm_80")


def test_the_words_give_every_roof_its_source_and_every_kernel_its_origin(session):
    said = describe(replace(session, device=A100))
    text = "\n".join(said)
    for words in (
        "L2: 7.22 TB/s (NVIDIA A100", f"{SHARED}: 19.5 TB/s (128 bytes a clock × 108 multiprocessors × 1410 MHz",
        "cuda.f32: 19.5 TFLOP/s, ridge point at", "Zone memory:", "r1 (from r0):", "By memory: DRAM 1; L2 0.125",
    ):  # fmt: skip
        assert words in text
    assert "Simulated counts have no rate" in caption(replace(session, device=A100))


def test_a_kernel_that_an_identity_made_faster_is_measured_by_memory_alone(session):
    product = replace(session.facts, full=replace(session.facts.full, flops=10**15))
    first = session.rounds[0]
    timing = Timing(median_ms=10.0, samples_ms=(), baselines=(), bandwidth_bytes_per_s=2e12)
    attempt = first.attempts[-1]
    timed = replace(attempt, evaluation=replace(attempt.evaluation, timing=timing, profile=None))
    rounds = (replace(first, attempts=(*first.attempts[:-1], timed)),)
    said = "\n".join(describe(replace(session, device=A100, facts=product, rounds=rounds)))
    assert "An identity saves this kernel many, so that memory alone sets its floor." in said
