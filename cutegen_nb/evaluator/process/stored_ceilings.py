"""Cache of the ceilings measured on a GPU, kept between sessions under the device's UUID.

One JSON file per device in the person's cache folder. Another driver or another torch measures again. A file
that cannot be read or written costs a second for measuring and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

from cutegen_nb.core.device import Device
from cutegen_nb.evaluator.process.bytecode import cache_folder

_FIELDS = frozenset({
    "bandwidth", "confined", "date", "l2_bytes", "memory_bytes", "peak_flops", "sm_count",
})  # fmt: skip


def recall(device: Device) -> dict[str, Any] | None:
    """Load the values measured on this device before; None where there are none that still apply."""
    path = _path(device)
    if path is None:
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    sound = isinstance(kept, dict) and kept.get("of") == _of(device) and kept.keys() >= _FIELDS
    return kept if sound else None


def keep(device: Device, found: dict[str, Any]) -> None:
    """Store the measured values; failure to write is ignored."""
    path = _path(device)
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"of": _of(device), **found}, indent=1), encoding="utf-8")
        fresh.replace(path)


def _path(device: Device) -> Path | None:
    if not device.uuid:
        return None
    return cache_folder(os.environ) / "cutegen_nb" / f"{device.uuid}.json"


def _of(device: Device) -> str:
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = "unknown"
    return f"{device.name}, driver {device.driver}, torch {torch}"
