"""What each GPU's data sheet states, as data: peaks, bandwidths, multiprocessors, clocks.

Peaks are dense and at boost clock; those with float32 accumulation where a sheet tells them apart. A figure
that no source states is nought, and what rests on it is left out rather than guessed. What is measured on a
machine takes the place of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TERA = 1e12
_MIB = 1 << 20

SMEM_BYTES_PER_CLOCK = 128
"""Of one multiprocessor: 32 banks of 32 bits a clock (CUDA C++ Programming Guide, "Shared Memory")."""
_FP32_LANES = {"sm_80": 64}
"""fp32 multiply-adds of one multiprocessor a clock (CUDA C++ Programming Guide, "Arithmetic Instructions");
others: 128."""

_OTHER_PRODUCT = re.compile(r"\b(Laptop|NVL|Ti|D|MIG|Max-Q|SUPER)\b")
"""Words that make a product another one than the sheet of its name's beginning describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSheet:
    """One GPU as its maker states it."""

    product: str
    """Part of the name that the driver gives it."""
    architecture: str
    """Without its letter: ``sm_90``."""
    bandwidth_bytes_per_s: float
    """DRAM, read and write together."""
    peak_flops: dict[str, float]
    """Dense FLOP/s by ``pipe.type``: ``cuda.f32``, ``tensor.f16``."""
    source: str
    """Document of the two above."""
    sm_count: int
    """Multiprocessors that are switched on."""
    clock_hz: float = 0.0
    """Boost clock; 0 where no sheet states it."""
    l2_bytes: int = 0
    """Size of the L2; 0 where no sheet states it."""
    l2_bytes_per_clock: float = 0.0
    """What the whole L2 reads a clock; 0 where nobody has published it."""
    chip_source: str = ""
    """Document of the multiprocessors, the clock and the L2's size."""
    l2_source: str = ""
    """Document of the L2's bandwidth, and whether it was stated or measured; empty without one."""

    @property
    def l2_bandwidth_bytes_per_s(self) -> float:
        """Bytes a clock × boost clock; 0 where either is not known."""
        return self.l2_bytes_per_clock * self.clock_hz


def multiprocessor_clocks(architecture: str, *, sm_count: int, clock_hz: float, peak_f32: float) -> float:
    """Clocks a second of all multiprocessors together; 0 where nothing tells.

    Multiprocessors × clock, or, where one of them is not known, what the fp32 peak implies:
    peak ÷ (2 · lanes of one multiprocessor).
    """
    if sm_count and clock_hz:
        return sm_count * clock_hz
    return peak_f32 / (2 * _FP32_LANES.get(architecture.rstrip("af"), 128))


def sheet(name: str) -> DataSheet | None:
    """The sheet of a GPU by the name its driver gives; None for one that is not in the table.

    A slice of a GPU (MIG) and a laptop's namesake have other ceilings, so they have no sheet here.
    """
    if _OTHER_PRODUCT.search(name):
        return None
    return next((one for one in SHEETS if re.search(rf"\b{re.escape(one.product)}\b", name)), None)


def _peaks(**tera_flops: float) -> dict[str, float]:
    return {name.replace("_", ".", 1): value * _TERA for name, value in tera_flops.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chip:
    """What the variants of one chip share."""

    architecture: str
    peak_flops: dict[str, float] = field(default_factory=dict)
    sm_count: int = 0
    mhz: float = 0
    l2_mib: int = 0
    l2_bytes_per_clock: float = 0.0
    chip_source: str = ""
    l2_source: str = ""


def _sheet(product: str, bandwidth: float, source: str, chip: _Chip) -> DataSheet:
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
    _sheet("A100 80GB PCIe", 1.935e12, f"{_A100_PAPER}, 80GB PCIe", _A100),
    _sheet("A100-SXM4-40GB", 1.555e12, f"{_A100_PAPER}, 40GB SXM", _A100),
    _sheet("A100-PCIE-40GB", 1.555e12, f"{_A100_PAPER}, 40GB PCIe", _A100),
    _sheet("A100", 2.039e12, f"{_A100_PAPER}, 80GB SXM", _A100),
    _sheet("H100 PCIe", 2.0e12, "NVIDIA H100 Tensor Core GPU data sheet, PCIe, dense", _H100_PCIE),
    _sheet("H100", 3.35e12, "NVIDIA H100 Tensor Core GPU data sheet, SXM, dense", _H100_SXM),
    _sheet("H200", 4.8e12, "NVIDIA H200 Tensor Core GPU data sheet, SXM, dense", _H200),
    _sheet("B200", 8.0e12, "NVIDIA HGX B200 data sheet, per GPU, dense", _B200),
    _sheet("L4", 3.0e11, "NVIDIA L4 Tensor Core GPU data sheet, half of the sparse figures", _L4),
    _sheet(
        "RTX 3090", 9.36e11,
        "NVIDIA Ampere GA102 white paper, RTX 3090, float32 accumulation, dense", _RTX_3090,
    ),
    _sheet(
        "RTX 4090", 1.008e12,
        "NVIDIA Ada GPU architecture white paper, RTX 4090, float32 accumulation, dense", _RTX_4090,
    ),
    _sheet(
        "RTX 5090", 1.792e12,
        "NVIDIA RTX Blackwell GPU architecture white paper, RTX 5090, float32 accumulation, dense", _RTX_5090,
    ),
)  # fmt: skip
"""The first whose name fits is taken."""
