"""Cost of each source line of a kernel: figures and heat for line views and the terminal's table.

A cell's heat is the line's share of the column's largest value. The value shown and the value that sets the
heat may differ: an efficiency is shown as per cent, but its heat follows the wasted amount, so that a poor
but rare access stays pale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis
from cutegen_nb.analysis.bottleneck.wait_causes import LATENCY_CLOCKS
from cutegen_nb.analysis.figures.quantity import count, scaled, share
from cutegen_nb.analysis.source.lines import by_line, spilled_by_line
from cutegen_nb.analysis.tables.counts import CountTable, kernel_name
from cutegen_nb.core.profile import SECTOR_BYTES, Counters, Profile

_LANES = 32
"""Lanes of a warp."""
_HOT_LINES = 10
"""Lines in the terminal's table."""
_ISSUED = "selected"
"""Sample reason of a warp that issued an instruction, which is no stall."""
_IDLE_LANES_SHOWN = 0.05
"""Share of idle lanes below which no column is shown for them: the ends of tensors idle as many."""
_ALWAYS = frozenset({"Global bytes", "Sector efficiency", "Instructions"})
"""Columns that are shown even where nothing is wasted."""
_REASONS = 3
"""Most stall reasons that a line's full text lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineColumn:
    """Column of a line view."""

    title: str
    """Heading, a word or two."""
    unit: str
    """Unit of the figures."""
    what: str
    """Meaning of the figures and of the heat, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCell:
    """Figure of one line in one column."""

    text: str
    """Figure as shown; empty where the line has none."""
    heat: float
    """Share of the column's largest value, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatLine:
    """Source line with its figures."""

    cells: tuple[LineCell, ...]
    """Cells in the order of the columns."""
    full: str
    """Every figure in full, as text."""
    cost: float
    """Share of the kernel's samples, or without samples the greatest share of any of its counts, from 0 to
    1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelHeat:
    """Lines of one kernel with their figures."""

    kernel: str
    """Kernel's name in the source, as far as it is known."""
    columns: tuple[LineColumn, ...]
    """Columns in which some line has a figure."""
    lines: dict[int, HeatLine]
    """Lines by number in the candidate's file, from 1."""
    hottest: int
    """Line that the diagnosis names first, else the line of the greatest cost; 0 where none has counts."""
    because: str
    """Reason why the line is the hottest, in a few words."""
    elsewhere: Counters
    """Counts of library lines and of instructions without a line."""


@dataclass(frozen=True, slots=True)
class _Line:
    counters: Counters
    spilled: int


@dataclass(frozen=True, slots=True)
class _Column:
    column: LineColumn
    weight: Callable[[_Line], float]
    """Function that gives the value behind the heat."""
    text: Callable[[_Line, _Line], str]
    """Function that formats the figure of a line, given the line and the whole kernel."""


def _short(value: float) -> str:
    """Format three significant figures with an SI prefix and no space: ``1.05M``."""
    return scaled(value, "").replace(" ", "")


def _bytes(line: _Line, _: _Line) -> str:
    moved = line.counters.gmem_sectors * SECTOR_BYTES
    return scaled(moved, "B") if moved else ""


def _efficiency(line: _Line, _: _Line) -> str:
    item = line.counters
    return share(item.gmem_ideal_sectors / item.gmem_sectors) if item.gmem_sectors else ""


def _wavefronts(line: _Line, _: _Line) -> str:
    return _short(line.counters.smem_wavefronts) if line.counters.smem_wavefronts else ""


def _conflicts(line: _Line, _: _Line) -> str:
    item = line.counters
    return _short(_extra(item)) if item.smem_wavefronts else ""


def _extra(item: Counters) -> int:
    return max(0, item.smem_wavefronts - item.smem_ideal_wavefronts)


def _instructions(line: _Line, _: _Line) -> str:
    return _short(line.counters.warp_instructions) if line.counters.warp_instructions else ""


def _stalls(line: _Line, whole: _Line) -> str:
    stalled = _stalled(line.counters)
    return share(stalled / _stalled(whole.counters)) if stalled else ""


def _stalled(item: Counters) -> int:
    return sum(amount for reason, amount in item.stall_samples.items() if reason != _ISSUED)


def _idle(line: _Line, _: _Line) -> str:
    active = line.counters.active_lane_fraction
    return share(1 - active) if active is not None and active < 1 else ""


def _idle_lanes(line: _Line) -> float:
    item = line.counters
    return max(0, _LANES * item.warp_instructions - item.thread_instructions)


def _waits(line: _Line, _: _Line) -> str:
    item = line.counters
    between = item.gmem_wait_instructions / item.gmem_waits if item.gmem_waits else 0
    return f"{_short(item.gmem_waits)}×{between:.0f}" if item.gmem_waits else ""


def _waited(line: _Line) -> float:
    """Return the clocks of load latency not covered by the instructions in between, one clock for each."""
    item = line.counters
    return max(0, item.gmem_waits * LATENCY_CLOCKS - item.gmem_wait_instructions)


def _spilled(line: _Line, _: _Line) -> str:
    return count(line.spilled) if line.spilled else ""


_COLUMNS = (
    _Column(
        LineColumn(
            title="Global bytes", unit="B moved",
            what="32 bytes for each sector of global memory that its loads, stores and atomics touch.",
        ),
        lambda line: line.counters.gmem_sectors, _bytes,
    ),
    _Column(
        LineColumn(
            title="Sector efficiency", unit="% of bytes used",
            what="The fewest sectors its bytes need ÷ sectors touched; shaded by the sectors too many.",
        ),
        lambda line: max(0, line.counters.gmem_sectors - line.counters.gmem_ideal_sectors), _efficiency,
    ),
    _Column(
        LineColumn(
            title="Shared passes", unit="wavefronts",
            what="Passes over the 32 banks of shared memory that its loads, stores and copies take.",
        ),
        lambda line: line.counters.smem_wavefronts, _wavefronts,
    ),
    _Column(
        LineColumn(
            title="Bank conflicts", unit="wavefronts too many",
            what="Passes over the banks of shared memory beyond those that its bytes need.",
        ),
        lambda line: _extra(line.counters), _conflicts,
    ),
    _Column(
        LineColumn(
            title="Instructions", unit="a warp each",
            what="Instructions, one for each warp that executes it.",
        ),
        lambda line: line.counters.warp_instructions, _instructions,
    ),
    _Column(
        LineColumn(
            title="Stalls", unit="% of samples",
            what="Samples in which a warp stood at this line and issued nothing, of all such samples.",
        ),
        lambda line: _stalled(line.counters), _stalls,
    ),
    _Column(
        LineColumn(
            title="Idle lanes", unit="% of lanes",
            what="Threads that are switched off while their warp executes it; shaded by how many in all.",
        ),
        _idle_lanes, _idle,
    ),
    _Column(
        LineColumn(
            title="Waits", unit="times × instr. between",
            what="Times a warp comes to the first use of loads behind a barrier, and the instructions it has "
            "to issue meanwhile; shaded by waits that these do not fill.",
        ),
        _waited, _waits,
    ),
    _Column(
        LineColumn(
            title="Spilled", unit="B a thread",
            what="Bytes that the instructions beside it move between registers and local memory because "
            "registers ran out, each counted once.",
        ),
        lambda line: line.spilled, _spilled,
    ),
)  # fmt: skip
"""All columns of a line view; those without figures are left out."""


def heat(profile: Profile, diagnosis: Diagnosis | None = None, source: str = "") -> tuple[KernelHeat, ...]:
    """Return the lines of each kernel, the kernel with most samples or instructions first.

    Kernels without lines are left out. `source` is the candidate's text, which has their names.
    """
    kernels = list(dict.fromkeys(launch.kernel for launch in profile.launches))
    parts = [_only(profile, kernel) for kernel in kernels]
    ordered = sorted(parts, key=lambda part: -(part.counters.samples or part.counters.warp_instructions))
    found = (_kernel(part, diagnosis, source) for part in ordered)
    return tuple(one for one in found if one.lines)


def _only(profile: Profile, kernel: str) -> Profile:
    return replace(profile, launches=tuple(one for one in profile.launches if one.kernel == kernel))


def _kernel(part: Profile, diagnosis: Diagnosis | None, source: str) -> KernelHeat:
    totals = by_line(part)
    spilled = _spilled_bytes(part)
    own = {
        number: _Line(totals.own.get(number, Counters()), spilled.get(number, 0))
        for number in sorted(totals.own.keys() | spilled.keys())
    }
    whole = _Line(part.counters, sum(spilled.values()))
    columns = tuple(one for one in _COLUMNS if _is_shown(one, own, whole))
    peaks = [max((one.weight(line) for line in own.values()), default=0) for one in columns]
    lines = {number: _heat_line(line, whole, columns, peaks) for number, line in own.items()}
    hottest, because = _hottest(lines, diagnosis)
    return KernelHeat(
        kernel=kernel_name(part.launches[0], source), lines=lines,
        columns=tuple(one.column for one in columns), hottest=hottest, because=because,
        elsewhere=totals.elsewhere,
    )  # fmt: skip


def _spilled_bytes(part: Profile) -> dict[int, int]:
    """Return spilled bytes by line; each kernel counts once, since its code is the same at every launch."""
    found: dict[int, int] = {}
    for launch in {one.kernel: one for one in part.launches}.values():
        for line, moved in spilled_by_line(launch).items():
            found[line] = found.get(line, 0) + moved
    return found


def _is_shown(column: _Column, own: dict[int, _Line], whole: _Line) -> bool:
    if column.weight is _idle_lanes:
        return _idle_lanes(whole) > _IDLE_LANES_SHOWN * _LANES * whole.counters.warp_instructions
    if column.column.title in _ALWAYS:
        return any(column.text(line, whole) for line in own.values())
    return any(column.weight(line) > 0 for line in own.values())


def _heat_line(line: _Line, whole: _Line, columns: tuple[_Column, ...], peaks: list[float]) -> HeatLine:
    return HeatLine(
        cells=tuple(
            LineCell(text=one.text(line, whole), heat=one.weight(line) / peak if peak else 0.0)
            for one, peak in zip(columns, peaks, strict=True)
        ),
        full=_full(line),
        cost=_cost(line, whole),
    )


def _cost(line: _Line, whole: _Line) -> float:
    """Return the line's share of the kernel's samples, or without samples the greatest share of any count."""
    item, total = line.counters, whole.counters
    if total.samples:
        return item.samples / total.samples
    return max(
        item.gmem_sectors / (total.gmem_sectors or 1),
        item.smem_wavefronts / (total.smem_wavefronts or 1),
        item.warp_instructions / (total.warp_instructions or 1),
    )


def _hottest(lines: dict[int, HeatLine], diagnosis: Diagnosis | None) -> tuple[int, str]:
    for cause in diagnosis.causes if diagnosis else ():
        if cause.line in lines:
            return cause.line, cause.name
        if cause.whole_launch or cause.line:
            break  # another kernel's, or one that no line has
    if not lines:
        return 0, ""
    line = min(lines, key=lambda number: (-lines[number].cost, number))
    return line, "the greatest share of what the kernel does"


def _full(line: _Line) -> str:
    """Format every figure of a line in full."""
    item = line.counters
    parts = [f"{count(item.warp_instructions)} warp instructions"] if item.warp_instructions else []
    if item.gmem_sectors:
        requests = item.gmem_requests or sum(one.requests for one in item.gmem_accesses.values())
        parts.append(
            f"{count(item.gmem_sectors)} sectors of global memory ({count(item.gmem_ideal_sectors)} needed) "
            f"in {count(requests)} requests"
        )
    if item.smem_wavefronts:
        parts.append(
            f"{count(item.smem_wavefronts)} wavefronts of shared memory "
            f"({count(item.smem_ideal_wavefronts)} needed)"
        )
    active = item.active_lane_fraction
    if active is not None and item.thread_instructions:
        parts.append(f"{share(active)} of the lanes active")
    if item.total_flops:
        parts.append(scaled(item.total_flops, "FLOP"))
    if item.gmem_waits:
        between = item.gmem_wait_instructions / item.gmem_waits
        parts.append(f"{count(item.gmem_waits)} waits for loads with {between:.3g} instructions between")
    if line.spilled:
        parts.append(f"{count(line.spilled)} bytes a thread spilled and refilled")
    if item.samples:
        reasons = sorted(item.stall_samples.items(), key=lambda one: (-one[1], one[0]))[:_REASONS]
        told = ", ".join(f"{name} {count(amount)}" for name, amount in reasons)
        parts.append(f"{count(item.samples)} samples ({told})")
    return "; ".join(parts)


# -- for a terminal ------------------------------------------------------------------------------------------
def hottest_lines(profile: Profile, source: str, *, most: int = _HOT_LINES) -> CountTable:
    """Return a table of the most costly lines of all kernels together."""
    title = f"Lines that cost most ({profile.source.value})"
    if not profile.launches:
        return CountTable(title=title, columns=(("Line", True), ("Source", False)), rows=())
    found = _kernel(profile, None, source)
    texts = source.splitlines()
    ordered = sorted(found.lines, key=lambda number: (-found.lines[number].cost, number))[:most]
    rows = tuple(
        (
            str(number),
            texts[number - 1].strip() if number <= len(texts) else "",
            *(cell.text or "–" for cell in found.lines[number].cells),
        )
        for number in ordered
    )
    left = len(found.lines) - len(ordered)
    units = "; ".join(f"{one.title}: {one.unit}" for one in found.columns)
    more = f" {left} more lines have counts." if left else ""
    return CountTable(
        title=title,
        columns=(("Line", True), ("Source", False), *((one.title, True) for one in found.columns)),
        rows=rows,
        note=f"{units}.{more}" if rows else "",
    )
