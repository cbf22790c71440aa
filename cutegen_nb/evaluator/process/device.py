"""Choice of the device that candidates run on, and the data-sheet ceilings of its roofline."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cutegen_nb.analysis.hardware import devices
from cutegen_nb.core.device import SIMULATED_SUFFIX, Device, DeviceKind
from cutegen_nb.core.errors import ConfigurationError, DeviceUnavailable, UsageError

SIMULATOR_ARCHITECTURE = "sm_80"
"""Architecture that the simulator models by default: the oldest one that the DSL compiles for. Every later
architecture has its instructions too."""

TVM_FFI = "apache-tvm-ffi"
"""Package through which the host calls compiled kernels on a GPU."""

_SIMULATED = {
    "sm_80": "A100",
    "sm_86": "RTX 3090",
    "sm_89": "RTX 4090",
    "sm_90a": "H200",
    "sm_100a": "B200",
    "sm_120a": "RTX 5090",
}
"""GPU whose data sheet gives the ceilings of a simulated architecture."""


def find_gpu(environment: Mapping[str, str] = os.environ) -> Device | None:
    """Find the GPU that CUDA would take first; None without a driver or a visible GPU.

    ``nvidia-smi`` lists every GPU, so CUDA_VISIBLE_DEVICES is applied here.
    """
    return next(iter(find_gpus(environment)), None)


def find_gpus(environment: Mapping[str, str] = os.environ) -> tuple[Device, ...]:
    """Find every GPU that CUDA would see, in its order; empty without a driver or a visible GPU."""
    return tuple(map(_gpu, _visible(_listed(), environment.get("CUDA_VISIBLE_DEVICES"))))


def _gpu(row: tuple[str, str, str, str]) -> Device:
    name, capability, driver, uuid = row
    found = Device(
        kind=DeviceKind.GPU,
        name=name,
        architecture=architecture_of(capability),
        bandwidth_bytes_per_s=0.0,
        peak_flops={},
        source="",
        driver=driver,
        uuid=uuid,
    )
    return _modelled(found, name)


def single_gpu_environment(device: Device) -> dict[str, str]:
    """Environment in which CUDA sees this GPU only, so that a candidate cannot run or hide work on another.

    Empty where the machine has one GPU, for which one of its MIG instances may stand.
    """
    several = sum(row[3] != device.uuid for row in _listed()) > 0
    return {"CUDA_VISIBLE_DEVICES": device.uuid} if device.uuid and several else {}


def _listed() -> tuple[tuple[str, str, str, str], ...]:
    """Name, compute capability, driver and UUID of each GPU in bus order; empty where nvidia-smi fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    query = "--query-gpu=name,compute_cap,driver_version,uuid"
    try:
        done = subprocess.run(
            [program, query, "--format=csv,noheader"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if done.returncode != 0:
        return ()
    rows = [line.split(", ") for line in done.stdout.strip().splitlines()]
    return tuple((row[0], row[1], row[2], row[3]) for row in rows if len(row) == 4)  # noqa: PLR2004 - as asked


def _visible(
    rows: Sequence[tuple[str, str, str, str]], wanted: str | None
) -> tuple[tuple[str, str, str, str], ...]:
    """Rows that CUDA_VISIBLE_DEVICES selects, in its order; every row where the variable is unset."""
    if wanted is None:
        return tuple(rows)
    found: list[tuple[str, str, str, str]] = []
    for item in wanted.split(","):
        row = _row(rows, item.strip())
        if row is None or row in found:
            break  # CUDA ignores an entry that it does not know, and all after it
        found.append(row)
    return tuple(found)


def _row(rows: Sequence[tuple[str, str, str, str]], entry: str) -> tuple[str, str, str, str] | None:
    """Row of one entry of CUDA_VISIBLE_DEVICES; None for an entry without a GPU."""
    if entry.isdecimal():
        return rows[int(entry)] if int(entry) < len(rows) else None
    if entry.startswith("MIG"):  # a MIG instance; CUDA uses a single one
        return next(iter(rows), None)
    # Otherwise a UUID, of which CUDA accepts a prefix.
    return next((row for row in rows if entry and row[3].startswith(entry)), None)


def architecture_of(capability: str) -> str:
    """Architecture of a compute capability, ``9.0`` → ``sm_90a``.

    From Hopper on, the suffix ``a`` enables the instructions that exist on one architecture only.
    """
    major, _, minor = capability.partition(".")
    suffix = "a" if int(major) >= 9 else ""  # noqa: PLR2004 - Hopper
    return f"sm_{major}{minor}{suffix}"


def ceilings(name: str) -> tuple[float, dict[str, float], str]:
    """DRAM bytes/s, dense peak FLOP/s by ``pipe.type`` and their source, from the data sheet.

    The bandwidth is 0 and the peaks are empty for a GPU that is not in the table.
    """
    found = devices.find_data_sheet(name)
    if found is None:
        return 0.0, {}, f"no data sheet on record for {name!r}"
    return found.bandwidth_bytes_per_s, dict(found.peak_flops), found.source


def _check_tvm_ffi() -> None:
    if importlib.util.find_spec("tvm_ffi") is None:
        raise ConfigurationError(
            f"{TVM_FFI}, which calls kernels on a GPU, is not installed; run `pip install {TVM_FFI}`."
        )


def _modelled(device: Device, name: str) -> Device:
    """Fill in the values of a device's data sheet; without one, only the source says so."""
    bandwidth, peaks, source = ceilings(name)
    stated = replace(device, bandwidth_bytes_per_s=bandwidth, peak_flops=peaks, source=source)
    found = devices.find_data_sheet(name)
    if found is None:
        return stated
    return replace(
        stated,
        sm_count=found.sm_count,
        l2_bytes=found.l2_bytes,
        clock_hz=found.clock_hz,
        l2_bandwidth_bytes_per_s=found.l2_bandwidth_bytes_per_s,
        l2_source=found.l2_source,
    )


def simulated(architecture: str) -> Device:
    """Describe the simulator as a device. Raises UsageError for an architecture that it does not model."""
    if architecture not in _SIMULATED:
        known = ", ".join(_SIMULATED)
        raise UsageError(f"The simulator does not know architecture {architecture!r}; choose one of {known}.")
    name = _SIMULATED[architecture]
    found = Device(
        kind=DeviceKind.SIMULATOR,
        name=f"{name}{SIMULATED_SUFFIX}",
        architecture=architecture,
        bandwidth_bytes_per_s=0.0,
        peak_flops={},
        source="",
    )
    return _modelled(found, name)


def choose(wanted: str, architecture: str | None, gpu: str = "") -> Device:
    """Choose the device for ``auto``, ``cuda`` or ``simulator``; `gpu` is the UUID of the GPU to take.

    Raises DeviceUnavailable when ``cuda`` was asked for and there is no GPU, UsageError for another word,
    ConfigurationError for a GPU without the package that calls kernels.
    """
    if wanted not in {"auto", "cuda", "simulator"}:
        raise UsageError(f"Device {wanted!r} is not known; choose auto, cuda or simulator.")
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu} if gpu else os.environ
    found = None if wanted == "simulator" else find_gpu(variables)
    if found is not None:
        _check_tvm_ffi()
        return found
    if wanted == "cuda":
        raise DeviceUnavailable(
            "No NVIDIA GPU was found (nvidia-smi is missing or lists none that CUDA_VISIBLE_DEVICES names); "
            "use --device simulator."
        )
    return simulated(architecture or SIMULATOR_ARCHITECTURE)
