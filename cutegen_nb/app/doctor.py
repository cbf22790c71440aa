"""Inspection of this machine: versions, GPU, profiling tools, authors, store and evaluator device."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import cutegen_nb
from cutegen_nb.analysis.estimate.targets import DEFAULT_TARGET
from cutegen_nb.authors.profile_file import config_path, read_profiles
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import ConfigurationError, CutegenError, StoreError
from cutegen_nb.evaluator.process import memory_holders
from cutegen_nb.evaluator.process.device import TVM_FFI
from cutegen_nb.evaluator.tools import ncu_import, sanitizer_checks
from cutegen_nb.evaluator.tools.tool_run import locate
from cutegen_nb.simulator.host.dsl import PACKAGE, TESTED_VERSION, check_version
from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore
from cutegen_nb.wiring import Settings, make_evaluator

_DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
"""File in which the NVIDIA driver lists its module parameters."""
_SMI_TIMEOUT_S = 20
"""Timeout in seconds of ``nvidia-smi`` and of the confinement subprocess."""
_ROOT = str(Path(cutegen_nb.__file__).parent.parent)
"""Folder that holds the package, for the import path of a subprocess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the report: an item, its state and a verdict."""

    item: str
    """Name of the item, such as ``GPU`` or ``Nsight Compute``."""
    value: str
    """State that was found, in a sentence."""
    fine: bool = True
    """False if the item needs repair; ``doctor`` then exits with status 1."""
    is_missing: bool = False
    """True if the item is not there and nothing fails without it, such as a GPU."""

    @property
    def mark(self) -> str:
        """Mark of the line: ``ok``, ``--`` for what is missing, ``!!`` for what needs repair."""
        return "!!" if not self.fine else "--" if self.is_missing else "ok"


async def examine(settings: Settings) -> tuple[Line, ...]:
    """Inspect every item. A broken item becomes a line with ``fine=False`` instead of an error."""
    return (
        Line(item="Python", value=f"{platform.python_version()} ({sys.executable})"),
        _package("torch"),
        _dsl(),
        _tvm_ffi(),
        await _gpu(),
        *await asyncio.to_thread(_memory),
        _ncu(),
        _sanitizer(),
        *_authors(settings),
        _store(settings.folder),
        await asyncio.to_thread(_confinement),
        await _placement(settings),
    )


def lines_json(lines: tuple[Line, ...]) -> dict[str, Any]:
    """Return the object that ``doctor --json`` prints."""
    return {
        "fine": all(line.fine for line in lines),
        "items": [{"item": line.item, "value": line.value, "fine": line.fine} for line in lines],
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _package(name: str) -> Line:
    version = _version(name)
    if version is None:
        return Line(item=name, value=f"not installed: pip install {name}", fine=False)
    build = (
        "CPU build" if version.endswith("+cpu") else "CUDA build" if "+cu" in version else "build not named"
    )
    return Line(item=name, value=f"{version} ({build})")


def _dsl() -> Line:
    try:
        check_version()
    except ConfigurationError as error:
        return Line(item="CuTe DSL", value=str(error), fine=False)
    found = _version(PACKAGE)
    text = "tested" if found == TESTED_VERSION else f"of a known series; {TESTED_VERSION} is the tested one"
    return Line(item="CuTe DSL", value=f"{found} ({text})")


def _tvm_ffi() -> Line:
    """Return the line of the package, without which a GPU is refused."""
    found = _version(TVM_FFI)
    told = f"not installed: a GPU is refused without it; pip install {TVM_FFI}"
    return Line(item="TVM-FFI", value=found or told, is_missing=found is None)


async def _gpu() -> Line:
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return Line(item="GPU", value="none (no nvidia-smi): kernels run on the simulator", is_missing=True)
    try:
        process = await asyncio.create_subprocess_exec(
            smi,
            "--query-gpu=name,driver_version",
            "--format=csv,noheader",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await asyncio.wait_for(process.communicate(), _SMI_TIMEOUT_S)
    except (OSError, TimeoutError) as error:
        return Line(item="GPU", value=f"nvidia-smi gave no answer ({error or 'timed out'})", fine=False)
    # One CSV line for each GPU: its name, a comma, the driver version.
    found = [line.strip() for line in output.decode(errors="replace").splitlines() if "," in line]
    if process.returncode != 0 or not found:
        told = "nvidia-smi is there and finds no GPU: kernels run on the simulator"
        return Line(item="GPU", value=told, is_missing=True)
    names = sorted({line.rpartition(",")[0] for line in found})
    driver = found[0].rpartition(",")[2].strip()
    return Line(item="GPU", value=f"{len(found)} × {', '.join(names)}, driver {driver}")


def _memory() -> tuple[Line, ...]:
    """Return a line for each GPU with the holders of its memory; empty without ``nvidia-smi``."""
    if shutil.which("nvidia-smi") is None:
        return ()
    found = memory_holders.read()
    if found is None:
        installed = _version("nvidia-ml-py") is not None
        why = "NVML gave no answer: ask nvidia-smi" if installed else "pip install nvidia-ml-py"
        return (Line(item="GPU memory", value=f"who holds it is not known; {why}"),)
    return tuple(
        Line(
            item=f"GPU memory {memory.index}" if len(found) > 1 else "GPU memory",
            value=memory_holders.sentence(memory, os.getpid()),
        )
        for memory in found
    )


def _ncu() -> Line:
    if locate(ncu_import.NAME) is None:
        return Line(item="Nsight Compute", value="not installed (ncu): no hardware counters", is_missing=True)
    try:
        parameters = _DRIVER_PARAMETERS.read_text(encoding="utf-8")
    except OSError:
        told = "installed; no NVIDIA driver, so nothing to profile"
        return Line(item="Nsight Compute", value=told, is_missing=True)
    # 1 lets only an administrator read the performance counters.
    restricted = re.search(r"RmProfilingAdminOnly:\s*1", parameters) is not None
    if restricted and os.geteuid() != 0:
        told = "installed; the driver lets only root read counters"
        return Line(item="Nsight Compute", value=told, is_missing=True)
    return Line(item="Nsight Compute", value="installed; counters may be read")


def _sanitizer() -> Line:
    path = locate(sanitizer_checks.NAME)
    absent = (
        f"{sanitizer_checks.ABSENT.removeprefix(f'{sanitizer_checks.NAME} was ')}; tier C runs without it"
    )
    value = f"{path}: part of tier C on a GPU" if path else absent
    return Line(item="compute-sanitizer", value=value, is_missing=not path)


def _authors(settings: Settings) -> tuple[Line, ...]:
    key = "set" if settings.key else "not set"
    url = settings.server.address
    model = settings.server.model or "not set"
    return (
        Line(item="author offline", value="always there: needs no key and no network"),
        Line(item="author manual", value="always there: prompts go to files"),
        Line(
            item="author openai",
            value=f"{settings.server.key_variable} {key}, server {url}, model {model}",
            is_missing=not settings.server.model,
        ),
        _profiles(),
    )


def _profiles() -> Line:
    path = config_path()
    try:
        names = [item.name for item in read_profiles(path)]
    except CutegenError as error:
        return Line(item="profiles", value=str(error), fine=False)
    found = f"{', '.join(names)}, of {path}" if names else f"none yet in {path}"
    return Line(item="profiles", value=f"{found}; `cutegen-nb profiles` says more")


def _store(folder: Path) -> Line:
    place = next(item for item in (folder, *folder.absolute().parents) if item.exists())
    able = place.is_dir() and os.access(place, os.W_OK)
    what = "may be written" if able else "may not be written: use --store"
    if (folder / FILE_NAME).exists():
        try:
            with SqliteStore(folder, writable=False) as store:
                what = f"holds {len(store.names())}, {what}"
        except StoreError as error:
            return Line(item="sessions", value=str(error), fine=False)
    return Line(item="sessions", value=f"{folder} ({what})", fine=able)


def _confinement() -> Line:
    """Apply the confinement of candidates in a subprocess and report it: a process cannot undo it."""
    path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "cutegen_nb.evaluator.process.confinement"],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True, text=True, check=False, timeout=_SMI_TIMEOUT_S,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return Line(item="candidates", value=f"what they may reach could not be found out ({error})")
    return Line(item="candidates", value=done.stdout.strip() or done.stderr.strip()[-200:])


async def _placement(settings: Settings) -> Line:
    evaluator = make_evaluator(settings)
    try:
        device = await evaluator.device()
    except CutegenError as error:
        return Line(item="kernels", value=str(error), fine=False)
    finally:
        await evaluator.close()
    if device.kind is DeviceKind.SIMULATOR:
        target = settings.target or DEFAULT_TARGET
        text = f"compiled for {device.architecture}, run on the simulator, times estimated for {target}"
    else:
        text = f"compiled for {device.architecture}, run and timed on {device.name}"
    return Line(item="kernels", value=text)
