"""Reader of ncu's CSV pages: the raw page (one row a kernel), the source page (one row an instruction).

Columns are found by their headings, and units are kept. The source page does not double quotes within lines
of source, so only the number of such a row is read. Rows of instructions hold no source text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cutegen_nb.core.profile import Metric
from cutegen_nb.evaluator.tools.ncu_report import (
    Recorded,
    RecordedInstruction,
    RecordedKernel,
    UnreadableReport,
)

RAW_PAGE = ("--csv", "--page", "raw", "--print-units", "base")
"""Options of ncu that print the raw page."""
SOURCE_PAGE = ("--csv", "--page", "source", "--print-source", "cuda,sass", "--print-units", "base")
"""Options of ncu that print the source page."""
_KERNEL, _GRID, _BLOCK, _CAPABILITY = "Kernel Name", "Grid Size", "Block Size", "CC"
"""Headings of the raw page."""
_DEVICE = "device__attribute_display_name"
"""Heading of the raw page for the device's name."""
_SPACES = {"Global": 4, "Local": 8, "Shared": 16}
"""Address spaces → values of the metric ``memory_type``."""
_OPERATIONS = {"Load": 2, "Store": 4, "Load/Store": 6, "LoadStore": 6}
"""Access operations → values of the metric ``memory_access_type``: 2 is a load, 4 a store, 6 both."""
_COLUMNS = {
    "Instructions Executed": "inst_executed",
    "Thread Instructions Executed": "thread_inst_executed",
    "Predicated-On Thread Instructions Executed": "thread_inst_executed_true",
    "# Samples": "smsp__pcsamp_sample_count",
    "L1 Tag Requests Global": "memory_l1_tag_requests_global",
    "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
    "L2 Theoretical Sectors Global Ideal": "memory_l2_theoretical_sectors_global_ideal",
    "L2 Theoretical Sectors Local": "memory_l2_theoretical_sectors_local",
    "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
    "Divergent Branches": "smsp__branch_targets_threads_divergent",
}
"""Headings of the source page → names of the same metrics in a report file."""
_STALLS = {
    "dispatch": "dispatch_stall", "imc": "imc_miss", "lg": "lg_throttle", "long_sb": "long_scoreboard",
    "math": "math_pipe_throttle", "mio": "mio_throttle", "no_inst": "no_instructions",
    "short_sb": "short_scoreboard", "sleep": "sleeping", "tex": "tex_throttle", "gmma": "gmma",
}  # fmt: skip
"""Stall reasons that the source page abbreviates → their names in a report file; others are the same."""
_LINE_ROW = re.compile(r'^"(\d+)",')
"""Row of the source page with a line of source: its number."""
_SASS_ROW = re.compile(r'^(?:"","",)?"0x[0-9a-f]+"')
"""Row of the source page with an instruction: its address, after two empty cells for the source or none."""


def read_raw(text: str, *, tool: str = "", driver: str = "", date: str = "") -> Recorded:
    """Read the kernels of ``ncu --csv --page raw``; text before the heading is skipped.

    Raises:
        UnreadableReport: there is no heading, or a row does not fit it.
    """
    start = text.find('"ID"')
    if start < 0:
        raise UnreadableReport("The raw page has no heading row beginning with ID: ncu printed no table.")
    rows = list(csv.reader(io.StringIO(text[start:])))
    heading, units = rows[0], rows[1]
    kernels, device, architecture = [], "", ""
    for row in rows[2:]:
        if len(row) != len(heading):
            raise UnreadableReport(
                f"A row of the raw page has {len(row)} cells under {len(heading)} headings."
            )
        cells = dict(zip(heading, row, strict=True))
        device = device or cells.get(_DEVICE, "")
        architecture = architecture or _architecture(cells.get(_CAPABILITY, ""))
        kernels.append(
            RecordedKernel(
                kernel=cells.get(_KERNEL, ""),
                grid=_extent(cells.get(_GRID, "")),
                block=_extent(cells.get(_BLOCK, "")),
                metrics=_metrics(heading, units, row),
            )
        )
    return Recorded(
        kernels=tuple(kernels), device=device, architecture=architecture, tool=tool, driver=driver, date=date
    )


def with_source(recorded: Recorded, text: str) -> Recorded:
    """Add the instructions of ``ncu --csv --page source --print-source cuda,sass`` to `recorded`."""
    remaining = [(kernel, _Part()) for kernel in recorded.kernels]
    for name, file, found in _sections(text):
        part = next((part for one, part in remaining if one.kernel == name and file not in part.files), None)
        if part is not None:
            part.files.add(file)
            part.instructions += found
    return replace(recorded, kernels=tuple(_joined(kernel, part) for kernel, part in remaining))


@dataclass(slots=True)
class _Part:
    files: set[str] = field(default_factory=set)
    instructions: list[RecordedInstruction] = field(default_factory=list)


def _joined(kernel: RecordedKernel, part: _Part) -> RecordedKernel:
    # Addresses become offsets from the kernel's first instruction.
    begin = min((one.offset for one in part.instructions), default=0)
    moved = (replace(one, offset=one.offset - begin) for one in part.instructions)
    return replace(kernel, instructions=tuple(sorted(moved, key=lambda one: one.offset)))


def _sections(text: str) -> Iterator[tuple[str, str, list[RecordedInstruction]]]:
    """Kernel, file and instructions of each table of the source page; offsets still hold addresses."""
    name = file = ""
    heading: list[str] = []
    line = 0
    found: list[RecordedInstruction] = []
    for row in text.splitlines():
        numbered = _LINE_ROW.match(row)
        if numbered:
            line = int(numbered[1])
        elif _SASS_ROW.match(row):
            found.append(_instruction(heading, next(csv.reader([row])), file, line))
        elif row.startswith(('"File Path"', '"Kernel Name"', '"Function Name"')):
            if found:
                yield name, file, found
                found = []
            title, value = next(csv.reader([row]))[:2]
            line = 0
            if title == "File Path":
                file = value
            else:
                name, file = value, file if title == "Function Name" else ""
        elif row.startswith(('"Line No"', '"Address"')):
            heading = next(csv.reader([row]))
    if found:
        yield name, file, found


def _instruction(heading: list[str], row: list[str], file: str, line: int) -> RecordedInstruction:
    if len(row) != len(heading):
        raise UnreadableReport(
            f"A row of the source page has {len(row)} cells under {len(heading)} headings."
        )
    at = heading.index("Address")
    counts: dict[str, float] = {}
    for title, cell in zip(heading, row, strict=True):
        metric = _COLUMNS.get(title) or _stall(title)
        value = _number(cell) if metric else None
        if metric and value is not None:
            counts[metric] = value
    cells = dict(zip(heading, row, strict=True))
    space, operation = (
        _SPACES.get(cells.get("Address Space", "")),
        _OPERATIONS.get(cells.get("Access Operation", "")),
    )
    if space or operation:
        counts |= {"memory_type": space or 0, "memory_access_type": operation or 0}
    return RecordedInstruction(
        offset=int(row[at], 16), file=file, line=line, text=row[at + 1].strip(), counts=counts
    )


def _stall(title: str) -> str:
    """Metric of a column of stall samples; empty for other columns.

    Columns with "(" in their title, samples in which nothing was issued, are parts of the others.
    """
    if not title.startswith("stall_") or "(" in title:
        return ""
    reason = title.removeprefix("stall_")
    return f"smsp__pcsamp_warps_issue_stalled_{_STALLS.get(reason, reason)}"


def _metrics(heading: list[str], units: list[str], row: list[str]) -> dict[str, Metric]:
    """Numbers of a row by metric: only names of metrics contain ``__`` or are all lower case."""
    found = {}
    for name, unit, cell in zip(heading, units, row, strict=True):
        value = _number(cell) if "__" in name or name.islower() else None
        if value is not None:
            found[name] = Metric(value=value, unit=unit)
    return found


def _number(cell: str) -> float | None:
    """Parse a number with commas between thousands; None for text, for an empty cell and for ``n/a``."""
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def _extent(cell: str) -> tuple[int, int, int]:
    numbers = [int(one) for one in re.findall(r"\d+", cell)] + [1, 1, 1]
    return numbers[0], numbers[1], numbers[2]


def _architecture(capability: str) -> str:
    return f"sm_{capability.replace('.', '')}" if re.fullmatch(r"\d+\.\d", capability) else ""
