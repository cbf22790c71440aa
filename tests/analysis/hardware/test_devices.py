"""Data sheets of GPUs, which agree with themselves."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.hardware.devices import SHEETS, find_data_sheet, total_clocks_per_s

DENSE_TENSOR = {"tensor.f16", "tensor.bf16", "tensor.tf32"}


@pytest.mark.parametrize("one", SHEETS, ids=lambda one: one.product)
def test_a_sheet_names_its_documents_and_has_a_peak_for_every_type_of_product(one):
    assert "NVIDIA" in one.source
    assert one.chip_source
    assert bool(one.l2_bytes_per_clock) == bool(one.l2_source)
    assert one.peak_flops.keys() >= {"cuda.f32", *DENSE_TENSOR}


@pytest.mark.parametrize("one", SHEETS, ids=lambda one: one.product)
def test_multiprocessors_and_clock_give_the_stated_fp32_peak_within_two_per_cent(one):
    """H100 PCIe's 51 TFLOP/s are 114 · 2 · 128 · 1755 MHz = 51.2; the others agree as closely."""
    implied = total_clocks_per_s(
        one.architecture, sm_count=0, clock_hz=0, peak_f32=one.peak_flops["cuda.f32"]
    )
    stated = total_clocks_per_s(
        one.architecture, sm_count=one.sm_count, clock_hz=one.clock_hz, peak_f32=one.peak_flops["cuda.f32"]
    )
    assert stated == pytest.approx(implied, rel=0.02)


@pytest.mark.parametrize("one", SHEETS, ids=lambda one: one.product)
def test_half_precision_products_are_twice_those_of_tf32(one):
    """Sparse figures taken for dense ones by mistake would break this."""
    assert one.peak_flops["tensor.f16"] == pytest.approx(2 * one.peak_flops["tensor.tf32"], rel=0.03)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA H100 NVL", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100X", "NVIDIA L40S",
    ],
)  # fmt: skip
def test_a_namesake_with_other_ceilings_has_no_sheet(name):
    assert find_data_sheet(name) is None


def test_an_l2_without_a_published_bandwidth_has_none():
    published = {one.product for one in SHEETS if one.l2_bandwidth_bytes_per_s}
    assert published == {
        "A100 80GB PCIe", "A100-SXM4-40GB", "A100-PCIE-40GB", "A100", "H100 PCIe", "H100", "H200",
    }  # fmt: skip
    a100 = find_data_sheet("NVIDIA A100-SXM4-80GB")
    assert a100 is not None
    assert a100.l2_bandwidth_bytes_per_s == pytest.approx(7.22e12, rel=0.001)
