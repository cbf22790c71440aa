"""The text report of ``compute-sanitizer`` → values.

Every line of it begins with ``=========``; a record is a headline with one blank after that and indented
lines that belong to it. Both spellings of a place are read: ``kernel(float *)+0x70 in file.py:41`` of 2023
and later, ``0x70 in file.py:41:kernel(float *)`` of before. NVIDIA's manual shows the headlines; of the XML
form, which has the same contents, it publishes no schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.gpu.kernel_names import is_a_librarys


class Kind(StrEnum):
    """What a record is about, by the names of the findings it becomes."""

    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    RACE = "race"
    UNINITIALISED = "uninitialised-read"
    BARRIER = "divergent-barrier"
    OTHER = "sanitizer"
    """Something else that the tool calls an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An instruction."""

    function: str = ""
    """Kernel or device function."""
    file: str = ""
    """Path of its source; empty without line information."""
    line: int = 0
    """Line of it, from 1; 0 without line information."""
    access: str = ""
    """``read`` or ``write`` in a race; empty elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One error or warning."""

    kind: Kind
    """What it is about."""
    headline: str
    """``Invalid __global__ read of size 4 bytes``, without the word that says how serious it is."""
    warning: bool = False
    """Whether the tool calls it a warning only."""
    places: tuple[Place, ...] = ()
    """Where it happened, the innermost first; both sides of a race."""
    thread: tuple[int, int, int] | None = None
    """threadIdx."""
    block: tuple[int, int, int] | None = None
    """blockIdx."""
    memory: tuple[str, ...] = ()
    """The lines that name an address or an allocation."""
    lines: tuple[str, ...] = ()
    """All its lines as printed, headline first, without the prefix."""

    @property
    def of_a_library(self) -> bool:
        """Whether it happened in a kernel of PyTorch's or of a library's."""
        return bool(self.places) and all(is_a_librarys(place.function) for place in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one run of one tool printed."""

    records: tuple[Record, ...]
    """In the order printed, at most as many as were asked for."""
    total: int | None
    """Errors and warnings counted by its summary; None where it came to none."""
    complaints: tuple[str, ...] = ()
    """What it says of itself and of the program: no CUDA call was made, the program ended with an error …"""


_PREFIX = "========="
_SUMMARY = re.compile(
    r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed)\b(?! were not| was not)"
)
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
_KINDS = (
    (re.compile(r"Invalid __\w+__ "), Kind.OUT_OF_BOUNDS),
    (re.compile(r"Race reported|Potential \w+ hazard|Potential invalid __shared__"), Kind.RACE),
    (re.compile(r"Uninitialized __\w+__ memory"), Kind.UNINITIALISED),
    (re.compile(r"Barrier error|Warpgroup MMA sequence|Deadlock detected"), Kind.BARRIER),
)


def read_report(text: str) -> Report:
    """The report in `text`. Lines without the tool's prefix are the program's own and left out."""
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
    """The record of a group; None for what names no instruction of a kernel."""
    severity = _SEVERITY.match(group[0])
    headline = group[0][severity.end() :] if severity else group[0]
    places = tuple(place for line in group for place in _places(line))
    if not places:
        return None
    details = "\n".join(group)
    kind = next((kind for pattern, kind in _KINDS if pattern.match(headline)), Kind.OTHER)
    if kind is Kind.OUT_OF_BOUNDS and "misaligned" in details:
        kind = Kind.MISALIGNED
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


def _places(line: str) -> Iterator[Place]:
    if "Host Frame" in line:
        return
    found = _PLACE.search(line)
    if found is None:
        return
    number = found["line"] or found["old_line"]
    yield Place(
        function=(found["function"] or found["old_function"] or "").strip(),
        file=(found["file"] or found["old_file"] or "").strip(),
        line=int(number) if number else 0,
        access=(found["access"] or "").lower(),
    )
