"""Which device candidates run on, and the ceilings its roofline is drawn with."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

from cutegen_nb.analysis import devices
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, UsageError

SIMULATOR_ARCHITECTURE = "sm_80"
"""What the simulator stands for unless told otherwise: the oldest architecture the DSL compiles
for, whose instructions every later one also has, and whose cp.async and mma.sync come next."""

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


def architecture_of(capability: str) -> str:
    """``9.0`` → ``sm_90a``: from Hopper on, the instructions worth having need the ``a``."""
    major, _, minor = capability.partition(".")
    suffix = "a" if int(major) >= 9 else ""  # noqa: PLR2004 - Hopper
    return f"sm_{major}{minor}{suffix}"


def ceilings(name: str) -> tuple[float, dict[str, float], str]:
    """DRAM bytes/s, dense peaks by ``pipe.type`` and their source; zeros for a GPU not in the table."""
    found = devices.sheet(name)
    if found is None:
        return 0.0, {}, f"no data sheet on record for {name!r}"
    return found.bandwidth_bytes_per_s, dict(found.peak_flops), found.source


def _modelled(device: Device, name: str) -> Device:
    """A device with what its data sheet states; as it is where there is none."""
    bandwidth, peaks, source = ceilings(name)
    stated = replace(device, bandwidth_bytes_per_s=bandwidth, peak_flops=peaks, source=source)
    found = devices.sheet(name)
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
    """The simulator as a device. Raises UsageError for an architecture it does not stand for."""
    if architecture not in _SIMULATED:
        known = ", ".join(_SIMULATED)
        raise UsageError(f"The simulator does not know architecture {architecture!r}; choose one of {known}.")
    name = _SIMULATED[architecture]
    found = Device(
        kind=DeviceKind.SIMULATOR,
        name=f"{name} (simulated)",
        architecture=architecture,
        bandwidth_bytes_per_s=0.0,
        peak_flops={},
        source="",
    )
    return _modelled(found, name)


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
