"""Search/replace edits of a reply; the text of each search must occur exactly once in the file."""

from __future__ import annotations

import difflib
import itertools
import re
from dataclasses import dataclass

# Models vary the number of marks, so five to nine are accepted.
_OPENING = re.compile(r"[ \t]*<{5,9} ?SEARCH[ \t]*")
_MIDDLE = re.compile(r"[ \t]*={5,9}[ \t]*")
_END = re.compile(r"[ \t]*>{5,9} ?REPLACE[ \t]*")
_COMPARED_LINES = 30
_COMPARED_CHARACTERS = 2000
"""Limits on the part of a search text that is compared with each place in the file, to find the nearest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replacement of one run of whole lines."""

    search: str
    """Lines to find, each ended by a newline, exactly as in the file."""
    replace: str
    """Replacement lines; empty to delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFault:
    """Reason why edits could not be applied."""

    reason: str
    """Sentences for the author, with the nearest place in the file where the text was not found."""


def find_edits(text: str) -> tuple[Edit, ...] | EditFault:
    """Return the edits of a reply, in order; an empty tuple without any, a fault for an incomplete one."""
    edits: list[Edit] = []
    openings = 0
    search: list[str] | None = None
    replace: list[str] | None = None
    # Read line by line: a regular expression over the whole reply takes hours where a model repeats itself.
    for line in text.split("\n"):
        opens = _OPENING.fullmatch(line) is not None
        openings += opens
        if search is None:
            search = [] if opens else None
        elif replace is None and _MIDDLE.fullmatch(line):
            replace = []
        elif replace is not None and _END.fullmatch(line):
            edits.append(Edit(search="".join(search), replace="".join(replace)))
            search = replace = None
        else:
            (search if replace is None else replace).append(f"{line}\n")
    if openings != len(edits):
        return EditFault(
            reason=f"{openings} edits were opened with <<<<<<< SEARCH and {len(edits)} are complete: "
            "each needs its own ======= and >>>>>>> REPLACE line."
        )
    return tuple(edits)


def apply_edits(source: str, edits: tuple[Edit, ...]) -> str | EditFault:
    """Apply every edit to `source`, or return the fault.

    Each search text is located in the original source, so the order of the edits does not matter. Overlapping
    edits are a fault.
    """
    text = source if source.endswith("\n") else source + "\n"
    spans: list[tuple[int, int, str]] = []
    for number, edit in enumerate(edits, start=1):
        place = _place(text, edit, number)
        if isinstance(place, EditFault):
            return place
        spans.append((*place, edit.replace))
    spans.sort()
    for (_, end, _), (start, _, _) in itertools.pairwise(spans):
        if start < end:
            return EditFault(reason="Two edits change the same lines: join them into one.")
    # From the end, so that earlier positions stay valid.
    for start, end, replacement in reversed(spans):
        text = text[:start] + replacement + text[end:]
    return text


def _place(text: str, edit: Edit, number: int) -> tuple[int, int] | EditFault:
    if not edit.search.strip():
        return EditFault(reason=f"Edit {number} has nothing after SEARCH: give the lines it replaces.")
    # The lookahead also finds overlapping places: three equal lines hold a pair of equal lines twice.
    starts = [m.start() for m in re.finditer(rf"^(?={re.escape(edit.search)})", text, re.MULTILINE)]
    if len(starts) == 1:
        return starts[0], starts[0] + len(edit.search)
    if starts:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
        return EditFault(
            reason=f"The text after SEARCH of edit {number} occurs {len(starts)} times (lines {lines}): "
            "take in more "
            "lines, so that it occurs once."
        )
    return EditFault(
        reason=f"The text after SEARCH of edit {number} is not in the file. {_nearest(text, edit.search)}"
    )


def _nearest(text: str, search: str) -> str:
    """Return the lines of `text` most similar to `search`, with their line number."""
    lines, wanted = text.splitlines(), search.splitlines()
    height = min(len(wanted), _COMPARED_LINES)
    compared = "\n".join(wanted[:height]).strip()[:_COMPARED_CHARACTERS]
    matcher = difflib.SequenceMatcher(b=compared, autojunk=False)
    best_share, best_start = 0.0, 0
    for start in range(max(1, len(lines) - height + 1)):
        matcher.set_seq1("\n".join(lines[start : start + height]).strip()[:_COMPARED_CHARACTERS])
        # Upper bounds on ratio(), cheaper to compute, rule out most places.
        if matcher.real_quick_ratio() <= best_share or matcher.quick_ratio() <= best_share:
            continue
        share = matcher.ratio()
        if share > best_share:
            best_share, best_start = share, start
    found = lines[best_start : best_start + height]
    place = "\n".join(found)
    said = f"The nearest place is line {best_start + 1}, which reads:\n{place}"
    if "".join(place.split()) == "".join(compared.split()):
        said += "\nIt differs in white space only: indentation and line ends must be as they are in the file."
    return said
