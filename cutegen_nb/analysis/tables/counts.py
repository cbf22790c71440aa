"""Tables of a profile's counts, shared by the HTML page, the notebook and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cutegen_nb.analysis.figures.quantity import count, scaled, share
from cutegen_nb.analysis.hardware.occupancy import Occupancy, launch_occupancy
from cutegen_nb.core.profile import Access, LaunchProfile, Profile, ProfileSource, function_name

_DASH = "–"
_NAME_WIDTH = 40
"""Most characters of a kernel's name in a column."""
_CONTROL = {"alu": "integer, logic, comparison", "fp16": "half and packed", "special": "special functions"}
_PIPE_TITLES = {
    **_CONTROL,
    "fp32": "single", "fp64": "double", "integer-multiply": "integer product", "convert": "conversion",
    "integer-divide": "integer division", "warp": "between lanes", "control": "branch, call, return",
    "fma": "single, products of integers", "lsu": "loads and stores", "xu": "special, conversions",
    "cbu": "branches, barriers", "adu": "address divergence", "uniform": "once a warp",
    "move": "move", "barrier": "barrier, fence, wait", "atomic": "atomic", "async-copy": "asynchronous copy",
    "load.param": "load, kernel parameters", "load.generic": "load, generic address",
    "store.generic": "store, generic address",
}  # fmt: skip
"""Descriptions of pipes whose name does not explain them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """Table of text cells; the first cell of a row names the row."""

    title: str
    """Subject of the table with its source: simulated counts or Nsight Compute."""
    columns: tuple[tuple[str, bool], ...]
    """Heading of each column, and True if the column holds figures."""
    rows: tuple[tuple[str, ...], ...]
    """Cells of each row, in the order of the columns."""
    note: str = ""
    """Remark needed to read the table; empty where none is needed."""


def detail_tables(profile: Profile) -> tuple[CountTable, ...]:
    """Return the tables with rows: instructions by pipe, FLOPs, and accesses to global and shared memory."""
    found = (pipes(profile), flops(profile), global_memory(profile), shared_memory(profile))
    return tuple(table for table in found if table.rows)


def pipes(profile: Profile) -> CountTable:
    """Return warp instructions by pipe, the most first."""
    counters = profile.counters
    total = counters.warp_instructions
    ordered = sorted(counters.instructions.items(), key=lambda item: (-item[1], item[0]))
    return CountTable(
        title=_title("Instructions by pipe", profile),
        columns=(("Pipe", False), ("What", False), ("Warp instr.", True), ("Share", True)),
        rows=tuple(
            (name, _PIPE_TITLES.get(name, name.replace(".", ", ")), count(amount), share(amount / total))
            for name, amount in ordered
        ),
        note=_said(
            profile,
            "PTX instructions, one a warp; the machine's own differ.",
            "The machine's instructions, one a warp, of the pipes that were counted.",
        ),
    )


def flops(profile: Profile) -> CountTable:
    """Return floating-point operations by pipe and type, the most first."""
    counters = profile.counters
    ordered = sorted(counters.flops.items(), key=lambda item: (-item[1], item[0]))
    return CountTable(
        title=_title("Arithmetic", profile),
        columns=(("Pipe and type", False), ("Operations", True), ("Share", True)),
        rows=tuple(
            (name, scaled(amount, "FLOP"), share(amount / counters.total_flops)) for name, amount in ordered
        ),
        note="A multiply-add counts two; a special function, a minimum and a maximum one; comparisons, "
        "selections and conversions none.",
    )


def global_memory(profile: Profile) -> CountTable:
    """Return requests to global memory by kind of access."""
    return _accesses(
        _title("Global memory", profile),
        profile.counters.gmem_accesses,
        ("Sectors", "Sectors / request"),
        _said(
            profile,
            "A sector is 32 bytes, counted once a warp request; no cache is modelled.",
            "A sector is 32 bytes, counted once a warp request, whichever cache answered it.",
        ),
    )


def shared_memory(profile: Profile) -> CountTable:
    """Return requests to shared memory by kind of access."""
    return _accesses(
        _title("Shared memory", profile),
        profile.counters.smem_accesses,
        ("Wavefronts", "Wavefronts / request"),
        "A wavefront is a pass over the 32 banks; those beyond the ideal are bank conflicts.",
    )


def _accesses(title: str, kinds: Mapping[str, Access], passes: tuple[str, str], note: str) -> CountTable:
    columns = (
        ("Access", False), ("Requests", True), ("Bytes", True), (passes[0], True), (passes[1], True),
        ("Ideal", True), ("Beyond it", True), ("Efficiency", True),
    )  # fmt: skip
    rows = [_access(kind, kinds[kind]) for kind in sorted(kinds, key=lambda kind: -kinds[kind].passes)]
    if len(rows) > 1:
        total = Access()
        for item in kinds.values():
            total += item
        rows.append(_access("all", total))
    return CountTable(title=title, columns=columns, rows=tuple(rows), note=note)


def _access(kind: str, item: Access) -> tuple[str, ...]:
    return (
        kind.replace("-", " "),
        count(item.requests),
        scaled(item.bytes, "B") if item.bytes or not item.passes else _DASH,
        count(item.passes),
        f"{item.passes / item.requests:.2f}" if item.requests else _DASH,
        count(item.ideal),
        count(item.passes - item.ideal),
        share(item.efficiency),
    )


# -- what the compiler knows ---------------------------------------------------------------------------------
def resources(profile: Profile) -> CountTable:
    """Return registers, spills, memory and occupancy of each kernel configuration that was launched."""
    seen: dict[tuple[object, ...], LaunchProfile] = {}
    for launch in profile.launches:
        if launch.resources is not None:
            seen.setdefault((launch.kernel, launch.block, launch.dynamic_smem_bytes), launch)
    columns = (
        ("Kernel", False), ("Registers", True), ("Spilled", True), ("Stack", True), ("Shared memory", True),
        ("CTAs / SM", True), ("Occupancy", True), ("Limited by", False), ("One more CTA needs", False),
    )  # fmt: skip
    return CountTable(
        title="What the compiler gave each kernel, and what fits one multiprocessor",
        columns=columns,
        rows=tuple(_resources(launch) for launch in seen.values()),
        note="Read from the machine code and the programming guide's table of limits; occupancy says how "
        "many warps there are to choose from, not how fast a kernel is.",
    )


def kernel_name(launch: LaunchProfile, source: str = "") -> str:
    """Return the name of the kernel's function, cut to 40 characters; `source` is the candidate's text."""
    name = function_name(launch.kernel, source)
    return name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 1]}…"


def _resources(launch: LaunchProfile) -> tuple[str, ...]:
    given = launch.resources
    assert given is not None
    spilled = given.spill_store_bytes + given.spill_load_bytes
    moved = launch.counters.local_load_bytes + launch.counters.local_store_bytes
    found = launch_occupancy(launch)
    return (
        kernel_name(launch),
        count(given.registers),
        *(_local(spilled, given.stack_bytes) if not launch.metrics else (_moved(moved), _DASH)),
        f"{scaled(given.static_smem_bytes, 'B')} + {scaled(launch.dynamic_smem_bytes, 'B')}",
        *_occupancy(found),
    )


def _occupancy(found: Occupancy | None) -> tuple[str, str, str, str]:
    if found is None:
        return _DASH, _DASH, _DASH, _DASH
    causes = ", ".join(found.limiters)
    return count(found.active_ctas), share(found.fraction), causes, found.lift or _DASH


def _local(spilled: int, stack: int) -> tuple[str, str]:
    return scaled(spilled, "B") if spilled else "none", scaled(stack, "B") if stack else "none"


def _moved(local_bytes: int) -> str:
    """Format measured local-memory traffic; a profiler does not tell the spills in the code."""
    return f"{scaled(local_bytes, 'B')} moved" if local_bytes else "none"


def _said(profile: Profile, simulated: str, measured: str) -> str:
    return simulated if profile.source is ProfileSource.SIMULATED else measured


def _title(words: str, profile: Profile) -> str:
    return f"{words} ({profile.source.value})"
