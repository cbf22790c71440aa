"""The caption names each roof's source."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.hardware.hierarchy import SHARED
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
