"""Which device candidates run on, and the ceilings its roofline is drawn with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
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


def find_gpu(environment: Mapping[str, str] = os.environ) -> Device | None:
    """The GPU that CUDA would take first, or None where there is no driver or no GPU it may take.

    ``nvidia-smi`` names all of them, whatever CUDA_VISIBLE_DEVICES says.
    """
    row = _visible(_listed(), environment.get("CUDA_VISIBLE_DEVICES"))
    if row is None:
        return None
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


def alone(device: Device) -> dict[str, str]:
    """What has CUDA see this GPU and no other: a candidate is not to share its work out, nor hide it there.

    Empty where there is but one, which an instance of it (MIG) may stand for.
    """
    several = sum(row[3] != device.uuid for row in _listed()) > 0
    return {"CUDA_VISIBLE_DEVICES": device.uuid} if device.uuid and several else {}


def _listed() -> tuple[tuple[str, str, str, str], ...]:
    """Name, compute capability, driver and UUID of each GPU, in the order of the bus."""
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
) -> tuple[str, str, str, str] | None:
    """The row that the first entry of CUDA_VISIBLE_DEVICES means; the first where nobody set it."""
    if wanted is None:
        return next(iter(rows), None)
    first = wanted.split(",")[0].strip()
    if first.isdecimal():
        return rows[int(first)] if int(first) < len(rows) else None
    if first.startswith("MIG"):  # an instance, of which CUDA takes one
        return next(iter(rows), None)
    return next((row for row in rows if first and row[3].startswith(first)), None)


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
            "No NVIDIA GPU was found (nvidia-smi is missing or lists none that CUDA_VISIBLE_DEVICES names); "
            "use --device simulator."
        )
    return simulated(architecture or SIMULATOR_ARCHITECTURE)
