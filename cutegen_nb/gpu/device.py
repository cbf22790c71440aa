"""Which device candidates run on, and the ceilings its roofline is drawn with."""

from __future__ import annotations

import re
import shutil
import subprocess

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, UsageError

SIMULATOR_ARCHITECTURE = "sm_80"
"""What the simulator stands for unless told otherwise: the oldest architecture the DSL compiles
for, whose instructions every later one also has, and whose cp.async and mma.sync come next."""

_TERA = 1e12


def _peaks(**tera_flops: float) -> dict[str, float]:
    return {name.replace("_", ".", 1): value * _TERA for name, value in tera_flops.items()}


_HOPPER = _peaks(
    cuda_f64=34, cuda_f32=67, cuda_f16=134, cuda_bf16=134,
    tensor_f64=67, tensor_tf32=494.7, tensor_f16=989.4, tensor_bf16=989.4, tensor_f8=1978.9, tensor_i8=1978.9,
)  # fmt: skip

_CEILINGS: tuple[tuple[str, float, dict[str, float], str], ...] = (
    (
        "A100 80GB PCIe", 1.935e12,
        _peaks(cuda_f64=9.7, cuda_f32=19.5, cuda_f16=78, cuda_bf16=39, tensor_f64=19.5, tensor_tf32=156,
               tensor_f16=312, tensor_bf16=312, tensor_i8=624),
        "NVIDIA A100 Tensor Core GPU data sheet, 80GB PCIe",
    ),
    (
        "A100-SXM4-40GB", 1.555e12,
        _peaks(cuda_f64=9.7, cuda_f32=19.5, cuda_f16=78, cuda_bf16=39, tensor_f64=19.5, tensor_tf32=156,
               tensor_f16=312, tensor_bf16=312, tensor_i8=624),
        "NVIDIA A100 Tensor Core GPU data sheet, 40GB SXM",
    ),
    (
        "A100", 2.039e12,
        _peaks(cuda_f64=9.7, cuda_f32=19.5, cuda_f16=78, cuda_bf16=39, tensor_f64=19.5, tensor_tf32=156,
               tensor_f16=312, tensor_bf16=312, tensor_i8=624),
        "NVIDIA A100 Tensor Core GPU data sheet, 80GB SXM",
    ),
    (
        "H100 PCIe", 2.0e12,
        _peaks(cuda_f64=26, cuda_f32=51, cuda_f16=102, cuda_bf16=102, tensor_f64=51, tensor_tf32=378,
               tensor_f16=756.5, tensor_bf16=756.5, tensor_f8=1513, tensor_i8=1513),
        "NVIDIA H100 Tensor Core GPU data sheet, PCIe, dense",
    ),
    ("H100", 3.35e12, _HOPPER, "NVIDIA H100 Tensor Core GPU data sheet, SXM, dense"),
    ("H200", 4.8e12, _HOPPER, "NVIDIA H200 Tensor Core GPU data sheet, SXM, dense"),
    (
        "B200", 8.0e12,
        _peaks(cuda_f64=37, cuda_f32=75, tensor_f64=37, tensor_tf32=1100, tensor_f16=2250, tensor_bf16=2250,
               tensor_f8=4500, tensor_i8=4500),
        "NVIDIA HGX B200 data sheet, per GPU, dense",
    ),
    (
        "L4", 3.0e11,
        _peaks(cuda_f32=30.3, tensor_tf32=60, tensor_f16=121, tensor_bf16=121, tensor_f8=242.5,
               tensor_i8=242.5),
        "NVIDIA L4 Tensor Core GPU data sheet, half of the sparse figures",
    ),
    (
        "RTX 3090", 9.36e11,
        _peaks(cuda_f32=35.6, cuda_f16=35.6, tensor_tf32=35.6, tensor_f16=71, tensor_bf16=71, tensor_i8=285),
        "NVIDIA Ampere GA102 white paper, RTX 3090, float32 accumulation, dense",
    ),
    (
        "RTX 4090", 1.008e12,
        _peaks(cuda_f32=82.6, cuda_f16=82.6, tensor_tf32=82.6, tensor_f16=165.2, tensor_bf16=165.2,
               tensor_f8=330.3, tensor_i8=660.6),
        "NVIDIA Ada GPU architecture white paper, RTX 4090, float32 accumulation, dense",
    ),
    (
        "RTX 5090", 1.792e12,
        _peaks(cuda_f32=104.8, cuda_f16=104.8, tensor_tf32=104.8, tensor_f16=209.5, tensor_bf16=209.5,
               tensor_f8=419, tensor_i8=838),
        "NVIDIA RTX Blackwell GPU architecture white paper, RTX 5090, float32 accumulation, dense",
    ),
)  # fmt: skip
"""Part of the product's name, DRAM bytes/s, dense peaks, source; the first whose name fits."""

_SIMULATED = {
    "sm_80": "A100",
    "sm_86": "RTX 3090",
    "sm_89": "RTX 4090",
    "sm_90a": "H200",
    "sm_100a": "B200",
    "sm_120a": "RTX 5090",
}
"""The GPU whose ceilings are drawn for a simulated architecture."""


def find_gpu() -> Device | None:
    """The first GPU that ``nvidia-smi`` names, or None where there is no driver or no GPU."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = "--query-gpu=name,compute_cap,driver_version,uuid"
    try:
        done = subprocess.run(
            [program, query, "--format=csv,noheader"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    rows = [line.split(", ") for line in done.stdout.strip().splitlines()]
    if done.returncode != 0 or not rows or len(rows[0]) != 4:  # noqa: PLR2004 - four were asked for
        return None
    name, capability, driver, uuid = rows[0]
    bandwidth, peaks, source = ceilings(name)
    return Device(
        kind=DeviceKind.GPU,
        name=name,
        architecture=architecture_of(capability),
        bandwidth_bytes_per_s=bandwidth,
        peak_flops=peaks,
        source=source,
        driver=driver,
        uuid=uuid,
    )


def architecture_of(capability: str) -> str:
    """``9.0`` → ``sm_90a``: from Hopper on, the instructions worth having need the ``a``."""
    major, _, minor = capability.partition(".")
    suffix = "a" if int(major) >= 9 else ""  # noqa: PLR2004 - Hopper
    return f"sm_{major}{minor}{suffix}"


def ceilings(name: str) -> tuple[float, dict[str, float], str]:
    """DRAM bytes/s, dense peaks by ``pipe.type`` and their source; zeros for a GPU not in the table."""
    for part, bandwidth, peaks, source in _CEILINGS:
        if re.search(rf"\b{re.escape(part)}\b", name) and "Laptop" not in name:
            return bandwidth, dict(peaks), source
    return 0.0, {}, f"no data sheet on record for {name!r}"


def simulated(architecture: str) -> Device:
    """The simulator as a device. Raises UsageError for an architecture it does not stand for."""
    if architecture not in _SIMULATED:
        known = ", ".join(_SIMULATED)
        raise UsageError(f"The simulator does not know architecture {architecture!r}; choose one of {known}.")
    name = _SIMULATED[architecture]
    bandwidth, peaks, source = ceilings(name)
    return Device(
        kind=DeviceKind.SIMULATOR,
        name=f"{name} (simulated)",
        architecture=architecture,
        bandwidth_bytes_per_s=bandwidth,
        peak_flops=peaks,
        source=source,
    )


def choose(wanted: str, architecture: str | None) -> Device:
    """The device for ``auto``, ``cuda`` or ``simulator``.

    Raises DeviceUnavailable when a GPU was asked for and there is none, UsageError for another word.
    """
    if wanted not in {"auto", "cuda", "simulator"}:
        raise UsageError(f"Device {wanted!r} is not known; choose auto, cuda or simulator.")
    gpu = None if wanted == "simulator" else find_gpu()
    if gpu is not None:
        return gpu
    if wanted == "cuda":
        raise DeviceUnavailable(
            "No NVIDIA GPU was found (nvidia-smi is missing or lists none); use --device simulator."
        )
    return simulated(architecture or SIMULATOR_ARCHITECTURE)
