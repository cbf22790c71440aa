"""GPU data sheets as a table: peak FLOP/s, bandwidths, multiprocessor counts, clocks.

Peaks are dense and at boost clock, with float32 accumulation where a sheet tells accumulators apart. A figure
that no source states is 0, and whatever needs the figure is left out rather than guessed. Figures measured on
a machine replace those of the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TERA = 1e12
"""FLOP/s in a TFLOP/s."""
_MIB = 1 << 20
"""Bytes in a MiB."""

SMEM_BYTES_PER_CLOCK = 128
"""Shared memory bandwidth of one multiprocessor, in bytes a clock: 32 banks of 32 bits (CUDA C++ Programming
Guide, "Shared Memory")."""
_FP32_LANES = {"sm_80": 64}
"""fp32 multiply-adds of one multiprocessor a clock, by architecture (CUDA C++ Programming Guide, "Arithmetic
Instructions"); 128 for architectures that are not listed."""

_OTHER_PRODUCT = re.compile(r"\b(Laptop|NVL|Ti|D|MIG|Max-Q|SUPER)\b")
"""Words in a product name that mark a variant with other figures than the sheet whose name it shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSheet:
    """Figures of one GPU as its maker states them."""

    product: str
    """Substring of the name that the driver reports."""
    architecture: str
    """Architecture without its suffix letter: ``sm_90``."""
    bandwidth_bytes_per_s: float
    """DRAM bandwidth in bytes a second, reads and writes together."""
    peak_flops: dict[str, float]
    """Dense FLOP/s by ``pipe.type``: ``cuda.f32``, ``tensor.f16``."""
    source: str
    """Document that states the DRAM bandwidth and the peaks."""
    sm_count: int
    """Multiprocessors that are switched on in this product."""
    clock_hz: float = 0.0
    """Boost clock in Hz; 0 where no sheet states it."""
    l2_bytes: int = 0
    """L2 capacity in bytes; 0 where no sheet states it."""
    l2_bytes_per_clock: float = 0.0
    """Bytes a clock that the whole L2 can read; 0 where no figure is published."""
    chip_source: str = ""
    """Document that states the multiprocessor count, the clock and the L2 capacity."""
    l2_source: str = ""
    """Document of the L2 bandwidth, and whether the figure was stated or measured; empty without a figure."""

    @property
    def l2_bandwidth_bytes_per_s(self) -> float:
        """L2 bandwidth in bytes a second: bytes a clock × boost clock; 0 where either is unknown."""
        return self.l2_bytes_per_clock * self.clock_hz


def total_clocks_per_s(architecture: str, *, sm_count: int, clock_hz: float, peak_f32: float) -> float:
    """Return the clocks a second of all multiprocessors together, or 0 where the inputs do not tell.

    The product of multiprocessor count and clock. Where one of them is unknown, the fp32 peak implies the
    value: peak ÷ (2 · fp32 lanes of one multiprocessor).
    """
    # A stated clock is preferred to an implied one.
    if sm_count and clock_hz:
        return sm_count * clock_hz
    # The 2 counts a fused multiply-add as two FLOPs, as the data sheets do.
    return peak_f32 / (2 * _FP32_LANES.get(architecture.rstrip("af"), 128))


def find_data_sheet(name: str) -> DataSheet | None:
    """Return the data sheet for the name that a GPU's driver reports, or None if the table has none.

    A slice of a GPU (MIG) and a laptop variant have other ceilings than the product they are named after, so
    both give None.
    """
    if _OTHER_PRODUCT.search(name):
        return None
    # Word boundaries keep ``L4`` from matching ``L40``.
    return next((one for one in SHEETS if re.search(rf"\b{re.escape(one.product)}\b", name)), None)


def _peaks(**tera_flops: float) -> dict[str, float]:
    # ``cuda_f32`` → ``cuda.f32``, since a keyword cannot hold a dot.
    return {name.replace("_", ".", 1): value * _TERA for name, value in tera_flops.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chip:
    """Figures that all product variants of one chip share."""

    architecture: str
    peak_flops: dict[str, float] = field(default_factory=dict)
    sm_count: int = 0
    mhz: float = 0
    l2_mib: int = 0
    l2_bytes_per_clock: float = 0.0
    chip_source: str = ""
    l2_source: str = ""


def _data_sheet(product: str, bandwidth: float, source: str, chip: _Chip) -> DataSheet:
    return DataSheet(
        product=product, architecture=chip.architecture, bandwidth_bytes_per_s=bandwidth,
        peak_flops=dict(chip.peak_flops), source=source, sm_count=chip.sm_count, clock_hz=chip.mhz * 1e6,
        l2_bytes=chip.l2_mib * _MIB, l2_bytes_per_clock=chip.l2_bytes_per_clock,
        chip_source=chip.chip_source, l2_source=chip.l2_source,
    )  # fmt: skip


_A100 = _Chip(
    architecture="sm_80",
    peak_flops=_peaks(
        cuda_f64=9.7, cuda_f32=19.5, cuda_f16=78, cuda_bf16=39, tensor_f64=19.5, tensor_tf32=156,
        tensor_f16=312, tensor_bf16=312, tensor_i8=624,
    ),
    sm_count=108, mhz=1410, l2_mib=40, l2_bytes_per_clock=5120,
    chip_source="NVIDIA A100 Tensor Core GPU Architecture white paper, table 4",
    l2_source="NVIDIA A100 Tensor Core GPU Architecture white paper: read bandwidth 5120 bytes a clock, at "
    "boost clock",
)  # fmt: skip
_GH100_L2 = (
    "Luo et al. 2024, arXiv 2402.13499, table V: 4472 bytes a clock measured on an H800, which has the same "
    "chip; at boost clock. NVIDIA states none"
)
_H100_PCIE = _Chip(
    architecture="sm_90",
    peak_flops=_peaks(
        cuda_f64=26, cuda_f32=51, cuda_f16=102, cuda_bf16=102, tensor_f64=51, tensor_tf32=378,
        tensor_f16=756.5, tensor_bf16=756.5, tensor_f8=1513, tensor_i8=1513,
    ),
    sm_count=114, mhz=1755, l2_mib=50, l2_bytes_per_clock=4472.3,
    chip_source="NVIDIA H100 Tensor Core GPU Architecture white paper, H100 PCIe",
    l2_source=_GH100_L2,
)  # fmt: skip
_HOPPER = _peaks(
    cuda_f64=34, cuda_f32=67, cuda_f16=134, cuda_bf16=134, tensor_f64=67, tensor_tf32=494.7,
    tensor_f16=989.4, tensor_bf16=989.4, tensor_f8=1978.9, tensor_i8=1978.9,
)  # fmt: skip
_H100_SXM = _Chip(
    architecture="sm_90", peak_flops=_HOPPER, sm_count=132, mhz=1980, l2_mib=50, l2_bytes_per_clock=4472.3,
    chip_source="NVIDIA H100 Tensor Core GPU Architecture white paper, H100 SXM5; the clock is the one its "
    "fp32 peak implies",
    l2_source=_GH100_L2,
)  # fmt: skip
_H200 = _Chip(
    architecture="sm_90", peak_flops=_HOPPER, sm_count=132, mhz=1980, l2_mib=60, l2_bytes_per_clock=4472.3,
    chip_source="the driver's own answers on an H200 (132 multiprocessors, 1980 MHz, L2 of 62,914,560 "
    "bytes), 2026-11-21",
    l2_source=_GH100_L2,
)  # fmt: skip
_B200 = _Chip(
    architecture="sm_100",
    peak_flops=_peaks(
        cuda_f64=37, cuda_f32=75, tensor_f64=37, tensor_tf32=1100, tensor_f16=2250, tensor_bf16=2250,
        tensor_f8=4500, tensor_i8=4500,
    ),
    sm_count=148,
    chip_source="148 multiprocessors as the driver reports them; NVIDIA states neither the clock nor the L2",
)  # fmt: skip
_L4 = _Chip(
    architecture="sm_89",
    peak_flops=_peaks(
        cuda_f32=30.3, tensor_tf32=60, tensor_f16=121, tensor_bf16=121, tensor_f8=242.5, tensor_i8=242.5,
    ),
    # 58 · 2 · 128 lanes · 2040 MHz = 30.3 TFLOP/s.
    sm_count=58, mhz=2040, l2_mib=48,
    chip_source="NVIDIA L4 product brief; 58 multiprocessors are what 30.3 TFLOP/s at 2040 MHz imply",
)  # fmt: skip
_RTX_3090 = _Chip(
    architecture="sm_86",
    peak_flops=_peaks(
        cuda_f32=35.6, cuda_f16=35.6, tensor_tf32=35.6, tensor_f16=71, tensor_bf16=71, tensor_i8=285,
    ),
    sm_count=82, mhz=1695, l2_mib=6,
    chip_source="NVIDIA Ampere GA102 GPU Architecture white paper, RTX 3090",
)  # fmt: skip
_RTX_4090 = _Chip(
    architecture="sm_89",
    peak_flops=_peaks(
        cuda_f32=82.6, cuda_f16=82.6, tensor_tf32=82.6, tensor_f16=165.2, tensor_bf16=165.2, tensor_f8=330.3,
        tensor_i8=660.6,
    ),
    sm_count=128, mhz=2520, l2_mib=72,
    chip_source="NVIDIA Ada GPU Architecture white paper, RTX 4090",
)  # fmt: skip
_RTX_5090 = _Chip(
    architecture="sm_120",
    peak_flops=_peaks(
        cuda_f32=104.8, cuda_f16=104.8, tensor_tf32=104.8, tensor_f16=209.5, tensor_bf16=209.5,
        tensor_f8=419, tensor_i8=838,
    ),
    sm_count=170, mhz=2407, l2_mib=96,
    chip_source="NVIDIA RTX Blackwell GPU Architecture white paper, RTX 5090",
)  # fmt: skip

_A100_PAPER = "NVIDIA A100 Tensor Core GPU data sheet"
SHEETS: tuple[DataSheet, ...] = (
    _data_sheet("A100 80GB PCIe", 1.935e12, f"{_A100_PAPER}, 80GB PCIe", _A100),
    _data_sheet("A100-SXM4-40GB", 1.555e12, f"{_A100_PAPER}, 40GB SXM", _A100),
    _data_sheet("A100-PCIE-40GB", 1.555e12, f"{_A100_PAPER}, 40GB PCIe", _A100),
    _data_sheet("A100", 2.039e12, f"{_A100_PAPER}, 80GB SXM", _A100),
    _data_sheet("H100 PCIe", 2.0e12, "NVIDIA H100 Tensor Core GPU data sheet, PCIe, dense", _H100_PCIE),
    _data_sheet("H100", 3.35e12, "NVIDIA H100 Tensor Core GPU data sheet, SXM, dense", _H100_SXM),
    _data_sheet("H200", 4.8e12, "NVIDIA H200 Tensor Core GPU data sheet, SXM, dense", _H200),
    _data_sheet("B200", 8.0e12, "NVIDIA HGX B200 data sheet, per GPU, dense", _B200),
    _data_sheet("L4", 3.0e11, "NVIDIA L4 Tensor Core GPU data sheet, half of the sparse figures", _L4),
    _data_sheet(
        "RTX 3090", 9.36e11,
        "NVIDIA Ampere GA102 white paper, RTX 3090, float32 accumulation, dense", _RTX_3090,
    ),
    _data_sheet(
        "RTX 4090", 1.008e12,
        "NVIDIA Ada GPU architecture white paper, RTX 4090, float32 accumulation, dense", _RTX_4090,
    ),
    _data_sheet(
        "RTX 5090", 1.792e12,
        "NVIDIA RTX Blackwell GPU architecture white paper, RTX 5090, float32 accumulation, dense", _RTX_5090,
    ),
)  # fmt: skip
"""All data sheets; the first whose product occurs in a name is taken, so longer names come before shorter."""
