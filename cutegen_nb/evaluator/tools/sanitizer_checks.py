"""compute-sanitizer's four tools as checks: their options, and findings from their reports.

The same faults decide as on the simulator: an access outside every allocation, a misaligned access, a race in
shared memory. Two others are flags. A read of unwritten memory has changed no result by then, as tier A gives
a candidate poisoned memory. A barrier that a part of a CTA does not reach has hung nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.evaluator.catalog.check import Check
from cutegen_nb.evaluator.catalog.memory import INITCHECK, MEMCHECK, RACECHECK, SYNCCHECK
from cutegen_nb.evaluator.tools.sanitizer_report import InstructionPlace, Record, RecordKind, Report

NAME = "compute-sanitizer"
"""Command of the tools."""
ABSENT = (
    f"{NAME} was not found: it comes with NVIDIA's CUDA toolkit (package cuda-sanitizer); put its folder on "
    "PATH or set CUDA_HOME"
)
_PRINTED = 50
"""Most records that a tool prints; a race is one record, however many threads take part."""
_SHOWN = 3
"""Most findings taken from one report."""
_LONGEST_EXHIBIT = 8
"""Most lines of a record in an exhibit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of compute-sanitizer."""

    name: str
    """Value of the option ``--tool``."""
    check: Check
    """Entry in the catalogue of checks."""
    options: tuple[str, ...] = ()
    """Options of this tool alone."""


TOOLS = (
    # No API errors: the DSL asks the driver for functions that the driver may lack.
    Tool(name="memcheck", check=MEMCHECK, options=("--report-api-errors", "no", "--padding", "256")),
    Tool(name="racecheck", check=RACECHECK),
    Tool(name="initcheck", check=INITCHECK),
    Tool(name="synccheck", check=SYNCCHECK),
)
"""Tools in the order of their runs: memcheck first, as the others do not check where an access goes."""

ENVIRONMENT = {
    # Line information of the Python source in the cubin.
    "CUTE_DSL_LINEINFO": "1",
    # PyTorch's pool hides where a tensor ends, and that memory was never written.
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
}
"""Environment variables under which the tools see a candidate's lines and allocations."""

_VERDICTS = {
    RecordKind.OUT_OF_BOUNDS: Verdict.OUT_OF_BOUNDS,
    RecordKind.MISALIGNED: Verdict.MISALIGNED,
    RecordKind.RACE: Verdict.RACE,
}
"""Verdicts by kind of record; other kinds are flags."""
_ADVICE = {
    RecordKind.OUT_OF_BOUNDS: "Guard the access with a condition, or correct the index or the grid.",
    RecordKind.MISALIGNED: "Make the address a multiple of the access's size or copy fewer elements at once.",
    RecordKind.RACE: "Put a barrier (cute.arch.sync_threads) between the two.",
    RecordKind.UNINITIALISED: (
        "With other values there the results were right all the same; write it first, or leave it unread."
    ),
    RecordKind.BARRIER: (
        "A barrier is for all threads of a CTA: let all of them reach it, or give it their number."
    ),
}
"""Advice on a repair by kind of record."""
_BULK = re.compile(r"CopyBulk|\btma|tma_|Tma|TMA|mbarrier|cp\.async\.bulk")
"""Signs of bulk copies, which racecheck cannot follow: it takes the issuing thread for the writer of the
bytes, and does not see what the mbarrier orders."""
_UNSURE = " The source copies in bulk, and racecheck does not see what an mbarrier orders: it may be no race."
"""Addition to the message of a race where the source has bulk copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitizerFinding:
    """Finding from one record of a report."""

    finding: Finding
    """The record as a finding."""
    exhibit: Exhibit
    """Evidence for the finding."""
    verdict: Verdict | None
    """Verdict that follows; None for a flag."""


def arguments(tool: Tool, report: Path) -> list[str]:
    """Make the options of a tool; its report goes to a file, apart from the program's own output."""
    return [
        "--tool", tool.name,
        "--print-limit", str(_PRINTED),
        "--show-backtrace", "device",
        "--strip-paths", "no",
        "--log-file", str(report),
        # Seconds until the first call that a tool can attach to: PyTorch may be imported from a cold disk.
        "--launch-timeout", "60",
        "--kill",
        *tool.options,
    ]  # fmt: skip


def own(report: Report) -> tuple[Record, ...]:
    """Return the records of kernels that are not PyTorch's or a library's."""
    return tuple(item for item in report.records if not item.of_a_library)


def judged(tool: Tool, report: Report, source: str) -> tuple[SanitizerFinding, ...]:
    """Make the findings of a report, one for each kind and line, deciding ones first."""
    bulk = bool(_BULK.search(source))
    found: dict[tuple[RecordKind, tuple[int, ...]], SanitizerFinding] = {}
    for record in own(report):
        lines = tuple(dict.fromkeys(_lines(record)))
        found.setdefault((record.kind, lines), _found(tool, record, lines, bulk=bulk))
    return tuple(sorted(found.values(), key=lambda item: item.verdict is None))[:_SHOWN]


def _found(tool: Tool, record: Record, lines: tuple[int, ...], *, bulk: bool) -> SanitizerFinding:
    unsure = record.kind is RecordKind.RACE and bulk
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
    return SanitizerFinding(finding=finding, exhibit=exhibit, verdict=verdict)


def _message(tool: Tool, record: Record, lines: tuple[int, ...]) -> str:
    by = f" by thread {record.thread}" if record.thread else ""
    by += f" of CTA {record.block}" if record.block else ""
    at = (
        f" (from {', '.join(f'{FILE_NAME}:{line}' for line in lines)})" if lines else f" in {_kernel(record)}"
    )
    headline = record.headline if record.kind is not RecordKind.RACE else _race(record)
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


def _is_candidates(place: InstructionPlace) -> bool:
    return place.line > 0 and PurePath(place.file).name == FILE_NAME
