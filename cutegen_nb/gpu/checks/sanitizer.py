"""compute-sanitizer's four tools as checks: what to start, and what their reports say of a candidate.

What decides is what decides on the simulator: an access outside every allocation, a misaligned one, a race in
shared memory. Memory read that nothing wrote has changed no result by then (tier A gives a candidate poisoned
memory), and a barrier that a part of a CTA does not reach has hung nothing: both are flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.evaluation import Exhibit, Finding, Severity, Verdict
from cutegen_nb.gpu.checks.registry.check import Check
from cutegen_nb.gpu.checks.registry.memory import INITCHECK, MEMCHECK, RACECHECK, SYNCCHECK
from cutegen_nb.gpu.checks.sanitizer_report import Kind, Place, Record, Report

NAME = "compute-sanitizer"
ABSENT = (
    f"{NAME} was not found: it comes with NVIDIA's CUDA toolkit (package cuda-sanitizer); put its folder on "
    "PATH or set CUDA_HOME"
)
_PRINTED = 50
"""Records that a tool prints at most; a race is one, however many threads are in it."""
_SHOWN = 3
_LONGEST_EXHIBIT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One of the four."""

    name: str
    """As ``--tool`` takes it."""
    check: Check
    """Its entry in the registry."""
    options: tuple[str, ...] = ()
    """Its own options."""


TOOLS = (
    # The DSL asks the driver for functions that it may lack, which is no error of anybody's.
    Tool(name="memcheck", check=MEMCHECK, options=("--report-api-errors", "no", "--padding", "256")),
    Tool(name="racecheck", check=RACECHECK),
    Tool(name="initcheck", check=INITCHECK),
    Tool(name="synccheck", check=SYNCCHECK),
)
"""In the order in which they run: memcheck first, because the others do not look where an access goes."""

ENVIRONMENT = {
    # Python lines in the cubin.
    "CUTE_DSL_LINEINFO": "1",
    # PyTorch's pool hides where a tensor ends, and that memory was never written.
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
}
"""Variables that the tools need to see what a candidate does."""

_VERDICTS = {
    Kind.OUT_OF_BOUNDS: Verdict.OUT_OF_BOUNDS,
    Kind.MISALIGNED: Verdict.MISALIGNED,
    Kind.RACE: Verdict.RACE,
}
_ADVICE = {
    Kind.OUT_OF_BOUNDS: "Guard the access with a predicate, or correct the index or the grid.",
    Kind.MISALIGNED: "Make the address a multiple of the access's size, or copy fewer elements at once.",
    Kind.RACE: "Put a barrier (cute.arch.sync_threads) between the two.",
    Kind.UNINITIALISED: (
        "With other values there the results were right all the same; write it first, or leave it unread."
    ),
    Kind.BARRIER: "A barrier is for all threads of a CTA: let all of them reach it, or give it their number.",
}
_BULK = re.compile(r"CopyBulk|\btma|tma_|Tma|TMA|mbarrier|cp\.async\.bulk")
"""Copies that racecheck cannot follow: it takes the bytes for written by the thread that issued the copy, and
does not see what its mbarrier orders."""
_UNSURE = " The source copies in bulk, and racecheck does not see what an mbarrier orders: it may be no race."


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one record is for a person."""

    finding: Finding
    """The record as a finding."""
    exhibit: Exhibit
    """What the finding rests on."""
    verdict: Verdict | None
    """What it decides; None for a flag."""


def arguments(tool: Tool, report: Path) -> list[str]:
    """Options with which a tool writes its report to a file, where the program's own output is not."""
    return [
        "--tool", tool.name,
        "--print-limit", str(_PRINTED),
        "--show-backtrace", "device",
        "--strip-paths", "no",
        "--log-file", str(report),
        # Importing PyTorch from a cold disk comes before the first call that it can attach to.
        "--launch-timeout", "60",
        "--kill",
        *tool.options,
    ]  # fmt: skip


def own(report: Report) -> tuple[Record, ...]:
    """The records of kernels that are not PyTorch's or a library's."""
    return tuple(item for item in report.records if not item.of_a_library)


def judged(tool: Tool, report: Report, source: str) -> tuple[Found, ...]:
    """What a report says of the candidate, one for each kind and line, what decides first."""
    bulk = bool(_BULK.search(source))
    found: dict[tuple[Kind, tuple[int, ...]], Found] = {}
    for record in own(report):
        lines = tuple(dict.fromkeys(_lines(record)))
        found.setdefault((record.kind, lines), _found(tool, record, lines, bulk=bulk))
    return tuple(sorted(found.values(), key=lambda item: item.verdict is None))[:_SHOWN]


def _found(tool: Tool, record: Record, lines: tuple[int, ...], *, bulk: bool) -> Found:
    unsure = record.kind is Kind.RACE and bulk
    verdict = None if record.warning or unsure else _VERDICTS.get(record.kind)
    message = _message(tool, record, lines)
    if unsure:
        message += _UNSURE
    finding = Finding(
        kind=record.kind.value,
        message=message,
        severity=Severity.DECIDES if verdict else Severity.FLAG,
        line=lines[0] if lines else 0,
        thread=record.thread,
        cta=record.block,
    )
    exhibit = Exhibit(
        kind=finding.kind,
        statement=f"{NAME} {tool.name} reports: {record.headline}.",
        trace=tuple(line.strip() for line in record.lines[:_LONGEST_EXHIBIT]),
        addresses=record.memory,
        lines=(min(lines), max(lines)) if lines else None,
    )
    return Found(finding=finding, exhibit=exhibit, verdict=verdict)


def _message(tool: Tool, record: Record, lines: tuple[int, ...]) -> str:
    by = f" by thread {record.thread}" if record.thread else ""
    by += f" of CTA {record.block}" if record.block else ""
    at = (
        f" (from {', '.join(f'{FILE_NAME}:{line}' for line in lines)})" if lines else f" in {_kernel(record)}"
    )
    headline = record.headline if record.kind is not Kind.RACE else _race(record)
    memory = f": {' '.join(record.memory).removesuffix('.')}" if record.memory else ""
    advice = _ADVICE.get(record.kind, "")
    return f"{tool.name}: {headline.removesuffix('.')}{by}{at}{memory}. {advice}".strip()


def _race(record: Record) -> str:
    sides = " and ".join(f"a {place.access}" for place in record.places[:2] if place.access)
    return f"{sides} of the same shared memory with no barrier between them".capitalize()


def _kernel(record: Record) -> str:
    return next((place.function for place in record.places if place.function), "a kernel")


def _lines(record: Record) -> Iterator[int]:
    """Lines of the candidate in a record, the innermost first."""
    yield from (place.line for place in record.places if _is_candidates(place))


def _is_candidates(place: Place) -> bool:
    return place.line > 0 and PurePath(place.file).name == FILE_NAME
