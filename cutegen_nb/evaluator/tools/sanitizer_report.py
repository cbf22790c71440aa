"""Parser of the text report of ``compute-sanitizer``.

Every line begins with ``=========``. A record is a headline, one blank after that prefix, and the indented
lines under it. Both spellings of a place are read: ``kernel(float *)+0x70 in file.py:41`` since 2023, and
``0x70 in file.py:41:kernel(float *)`` before. NVIDIA's manual shows the headlines. It publishes no schema of
the XML form, which has the same contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.evaluator.timing.kernel_names import is_library_kernel


class RecordKind(StrEnum):
    """Kind of a record, by the name of the finding that it becomes."""

    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    RACE = "race"
    UNINITIALISED = "uninitialised-read"
    BARRIER = "divergent-barrier"
    OTHER = "sanitizer"
    """Any other error of the tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionPlace:
    """Place of an instruction in function and source."""

    function: str = ""
    """Kernel or device function."""
    file: str = ""
    """Path of the source; empty without line information."""
    line: int = 0
    """Line in the source, from 1; 0 without line information."""
    access: str = ""
    """``read`` or ``write`` in a race; empty elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One error or warning of a report."""

    kind: RecordKind
    """Kind of the error."""
    headline: str
    """First line without the word for its severity: ``Invalid __global__ read of size 4 bytes``."""
    warning: bool = False
    """True if the tool reports only a warning or an information."""
    places: tuple[InstructionPlace, ...] = ()
    """Instructions concerned, the innermost first; both sides of a race."""
    thread: tuple[int, int, int] | None = None
    """threadIdx of the access; None where not stated."""
    block: tuple[int, int, int] | None = None
    """blockIdx of the access; None where not stated."""
    memory: tuple[str, ...] = ()
    """Lines that name an address or an allocation."""
    lines: tuple[str, ...] = ()
    """All lines of the record, headline first, without the prefix."""

    @property
    def of_a_library(self) -> bool:
        """True if all places are in kernels of PyTorch or of a library."""
        return bool(self.places) and all(is_library_kernel(place.function) for place in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Report of one run of one tool."""

    records: tuple[Record, ...]
    """Records in the order printed, at most as many as were requested."""
    total: int | None
    """Errors and warnings counted in the summary line; None where there is no such line."""
    complaints: tuple[str, ...] = ()
    """Messages about the tool and the program: no CUDA call was made, the program ended with an error …"""


_PREFIX = "========="
"""Prefix of every line of a report."""
_SUMMARY = re.compile(
    r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed)\b(?! were not| was not)"
)
"""Summary line with the total; a line about records that were not printed does not match."""
_SEVERITY = re.compile(r"(error|warning|info|fatal): *", re.IGNORECASE)
_THREAD = re.compile(r"\bthread \((\d+), ?(\d+), ?(\d+)\)", re.IGNORECASE)
_BLOCK = re.compile(r"\bblock \((\d+), ?(\d+), ?(\d+)\)")
_MEMORY = re.compile(r"(?:Address|Access|and is|Barrier is located)\b", re.IGNORECASE)
_PLACE = re.compile(
    r"(?:\b(?P<access>Read|Write|Atomic)\b[^\n]*? )?(?:\bat|Device Frame:) ?"
    r"(?:0x[0-9a-f]+(?: in (?:(?P<old_file>[^\n:]+):(?P<old_line>\d+):)?(?P<old_function>[^\n\[]+))?"
    r"|(?P<function>[^\n]+?)[+:]0x[0-9a-f]+(?: in (?P<file>[^\n]+?):(?P<line>\d+))?)"
    r"\s*(?:\[.*\])?$"
)
"""Place of an instruction in both spellings; groups of the one before 2023 begin with ``old_``."""
_KINDS = (
    (re.compile(r"Invalid __\w+__ "), RecordKind.OUT_OF_BOUNDS),
    (re.compile(r"Race reported|Potential \w+ hazard|Potential invalid __shared__"), RecordKind.RACE),
    (re.compile(r"Uninitialized __\w+__ memory"), RecordKind.UNINITIALISED),
    (re.compile(r"Barrier error|Warpgroup MMA sequence|Deadlock detected"), RecordKind.BARRIER),
)
"""Patterns of headlines → kinds; the first match counts."""


def read_report(text: str) -> Report:
    """Parse a report. Lines without the tool's prefix are the program's own and are skipped."""
    records: list[Record] = []
    complaints: list[str] = []
    total: int | None = None
    for group in _groups(text.splitlines()):
        summary = _SUMMARY.match(group[0])
        if summary:
            total = int(summary[1])
            continue
        record = _record(group)
        if record is not None:
            records.append(record)
        elif "SUMMARY" not in group[0] and not group[0].startswith("COMPUTE-SANITIZER"):
            complaints.append(" ".join(line.strip() for line in group[:2]))
    return Report(records=tuple(records), total=total, complaints=tuple(complaints))


def _groups(lines: Iterable[str]) -> Iterator[list[str]]:
    """Headlines, each with the indented lines under it."""
    group: list[str] = []
    for line in lines:
        if not line.startswith(_PREFIX):
            continue
        content = line.removeprefix(_PREFIX).removeprefix(" ").rstrip()
        if group and (not content or not content.startswith(" ")):
            yield group
            group = []
        if content:
            group.append(content)
    if group:
        yield group


def _record(group: Sequence[str]) -> Record | None:
    """Parse the record of a group; None for a group that names no instruction of a kernel."""
    severity = _SEVERITY.match(group[0])
    headline = group[0][severity.end() :] if severity else group[0]
    places = tuple(place for line in group for place in _places(line))
    if not places:
        return None
    details = "\n".join(group)
    kind = next((kind for pattern, kind in _KINDS if pattern.match(headline)), RecordKind.OTHER)
    if kind is RecordKind.OUT_OF_BOUNDS and "misaligned" in details:
        kind = RecordKind.MISALIGNED
    thread, block = _THREAD.search(details), _BLOCK.search(details)
    return Record(
        kind=kind,
        headline=headline,
        warning=severity is not None and severity[1].lower() in {"warning", "info"},
        places=places,
        thread=(int(thread[1]), int(thread[2]), int(thread[3])) if thread else None,
        block=(int(block[1]), int(block[2]), int(block[3])) if block else None,
        memory=tuple(line.strip() for line in group[1:] if _MEMORY.match(line.strip())),
        lines=tuple(group),
    )


def _places(line: str) -> Iterator[InstructionPlace]:
    """Place named in a line; none for frames of the host."""
    if "Host Frame" in line:
        return
    found = _PLACE.search(line)
    if found is None:
        return
    number = found["line"] or found["old_line"]
    yield InstructionPlace(
        function=(found["function"] or found["old_function"] or "").strip(),
        file=(found["file"] or found["old_file"] or "").strip(),
        line=int(number) if number else 0,
        access=(found["access"] or "").lower(),
    )
