"""Import of a ``.ncu-rep`` report of Nsight Compute, by the first reader that works here.

The reader in `ncu_rep_file` needs no tool. An older or later layout goes to NVIDIA's module ``ncu_report``
where that can be imported. Otherwise ``ncu`` prints its CSV pages, which are read.
"""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.profile import Metric
from cutegen_nb.evaluator.tools.ncu_csv import RAW_PAGE, SOURCE_PAGE, read_raw, with_source
from cutegen_nb.evaluator.tools.ncu_rep_file import read_report
from cutegen_nb.evaluator.tools.ncu_report import (
    Recorded,
    RecordedInstruction,
    RecordedKernel,
    UnreadableReport,
)
from cutegen_nb.evaluator.tools.tool_run import locate

NAME = "ncu"
"""Command of Nsight Compute."""
_MODULE = "ncu_report"
"""NVIDIA's Python module that reads reports."""
_PAGE_S = 120.0
"""Timeout in seconds for printing one page of a report, which may hold hundreds of kernels."""


def import_report(path: Path) -> Recorded:
    """Read the kernels of a report file.

    Raises:
        UsageError: the file cannot be opened, or no reader here understands it; the message names one that
            would.
    """
    try:
        return read_report(path)
    except OSError as problem:
        raise UsageError(f"{path} cannot be opened: {problem.strerror or problem}.") from problem
    except UnreadableReport as problem:
        said = str(problem)
    found = _by_module(path) or _by_command(path)
    if found is None:
        message = (
            f"{said} NVIDIA's module {_MODULE} (in extras/python of an Nsight Compute) on PYTHONPATH, or its "
            f"command {NAME} on PATH, reads reports of its own version."
        )
        raise UsageError(message)
    return found


def _by_command(path: Path) -> Recorded | None:
    """Read by ``ncu --import``; None without ncu, or where it refuses the file too."""
    command = locate(NAME)
    if command is None:
        return None
    pages = []
    for page in (RAW_PAGE, SOURCE_PAGE):
        try:
            done = subprocess.run(
                [command, "--import", str(path), *page],
                capture_output=True, text=True, timeout=_PAGE_S, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        pages.append(done.stdout)
    try:
        recorded = read_raw(pages[0], tool="Nsight Compute")
        return with_source(recorded, pages[1]) if pages[1] else recorded
    except UnreadableReport:
        return None


# -- NVIDIA's module -----------------------------------------------------------------------------------------
def _by_module(path: Path) -> Recorded | None:
    """Read by ``ncu_report``; None without that module, or where it refuses the file."""
    try:
        module = importlib.import_module(_MODULE)
        context = module.load_report(str(path))
    except (ImportError, RuntimeError, OSError):
        return None
    return recorded_by(context)


def recorded_by(context: Any) -> Recorded:
    """Read the kernels from a context of ``ncu_report``, in all ranges."""
    actions = [one for part in _each(context.num_ranges, context.range_by_idx)
               for one in _each(part.num_actions, part.action_by_idx)]  # fmt: skip
    kernels = tuple(_kernel(one) for one in actions)
    first = actions[0] if actions else None
    major, minor = (
        first.metric_by_name(f"device__attribute_compute_capability_{part}") if first else None
        for part in ("major", "minor")
    )
    device = first.metric_by_name("device__attribute_display_name") if first else None
    return Recorded(
        kernels=kernels,
        device=device.as_string() if device else "",
        architecture=f"sm_{major.as_uint64()}{minor.as_uint64()}" if major and minor else "",
        tool="Nsight Compute",
    )


def _each(count: Any, get: Any) -> Iterator[Any]:
    return (get(index) for index in range(count()))


def _kernel(action: Any) -> RecordedKernel:
    metrics: dict[str, Metric] = {}
    by_address: dict[int, dict[str, float]] = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = _number(metric.value())
        if value is not None:
            metrics[name] = Metric(value=value, unit=metric.unit() or "")
        # A metric's correlation ids are the addresses of the instructions that its instances belong to.
        if metric.has_correlation_ids() and name.startswith(("inst_", "thread_inst_", "memory_", "smsp__")):
            addresses = metric.correlation_ids()
            for index in range(metric.num_instances()):
                amount = _number(metric.value(index))
                if amount is not None:
                    by_address.setdefault(int(addresses.value(index)), {})[name] = amount
    grid, block = (
        tuple(int(metrics[f"launch__{what}_dim_{axis}"].value) for axis in "xyz")
        for what in ("grid", "block")
    )
    return RecordedKernel(
        kernel=action.name(),
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        metrics=metrics,
        instructions=tuple(_instructions(action, by_address)),
    )


def _instructions(action: Any, by_address: dict[int, dict[str, float]]) -> Iterator[RecordedInstruction]:
    begin = min(by_address, default=0)
    for address in sorted(by_address):
        place = action.source_info(address)
        yield RecordedInstruction(
            offset=address - begin,
            file=place.file_name() if place else "",
            line=place.line() if place else 0,
            text=action.sass_by_pc(address) or "",
            counts=by_address[address],
        )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
