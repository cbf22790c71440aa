"""The chain of a CTA: its instructions, products, shuffles and waits."""

from __future__ import annotations

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.launch_terms import LATENCY
from cutegen_nb.analysis.estimate.targets import find_target

H200, A100 = find_target("H200"), find_target("A100")


def test_a_few_long_ctas_do_not_make_every_wave_long(call):
    """Where CTAs differ, the longest warp is waited for once, not in each of a thousand waves."""
    long = {"longest_warp_instructions": 10_000}
    alike, differing = (
        next(
            term.seconds
            for term in estimate(call(**long, error_fraction=error), H200).terms
            if term.name == LATENCY
        )
        for error in (0.0, 0.1)
    )
    assert differing < alike / 10
    longer = estimate(call(longest_warp_instructions=1 << 24, error_fraction=0.1), H200)
    assert longer.bound == LATENCY


def test_a_cta_that_fills_its_multiprocessor_waits_after_it_has_issued(call):
    """Its instructions, its loads and its products take turns; of several CTAs one works while another waits."""
    work = {"instructions": {"alu": 1 << 31}, "flops": {"tensor.f16": 1 << 42}}
    alone, several = (
        estimate(call(counters=work, dynamic_smem_bytes=smem), H200).seconds for smem in (200 << 10, 20 << 10)
    )
    assert alone > 1.3 * several


def test_products_lengthen_the_chain_of_the_warps_that_wait_for_them(call):
    """With one CTA a multiprocessor its products and its copies take turns."""
    flops = {"flops": {"tensor.f16": 1 << 40}}
    before, after = (
        next(term.seconds for term in estimate(call(counters=counted), H200).terms if term.name == LATENCY)
        for counted in ({}, flops)
    )
    assert after > before


def test_shuffles_lengthen_the_chain_of_a_warp(call):
    few, many = (
        next(
            term.seconds
            for term in estimate(
                call(counters={"instructions": kinds}, longest_warp_instructions=1000, load_rounds=0), H200
            ).terms
            if term.name == LATENCY
        )
        for kinds in ({"alu": 10 << 21}, {"alu": 5 << 21, "warp": 5 << 21})
    )
    assert many > 1.5 * few
