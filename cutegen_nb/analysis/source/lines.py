"""Counts by line of the candidate's own source, apart from those of the libraries it calls."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, is_own


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTotals:
    """Counts of all launches of a profile, by line."""

    own: dict[int, Counters]
    """Counts by line of the candidate's file, from 1."""
    elsewhere: Counters
    """Counts of library lines, and of instructions without a line."""

    @property
    def known(self) -> bool:
        """True if any count belongs to a line of the candidate."""
        return bool(self.own)


def by_line(profile: Profile) -> LineTotals:
    """Add up the counts of every launch by line."""
    own: dict[int, Counters] = {}
    elsewhere = Counters()
    for launch in profile.launches:
        for item in launch.lines:
            if is_own(item.file, item.line):
                own[item.line] = own.get(item.line, Counters()) + item.counters
            else:
                elsewhere += item.counters
    return LineTotals(own=dict(sorted(own.items())), elsewhere=elsewhere)


def spilled_by_line(launch: LaunchProfile) -> dict[int, int]:
    """Return the bytes a thread that spills and refills move, by line of the candidate's file.

    Each instruction counts once, as it stands in the code. The assembler places a spill at the line it was
    made for.
    """
    found: dict[int, int] = {}
    for item in launch.code.lines if launch.code else ():
        if item.spill_bytes and is_own(item.file, item.line):
            found[item.line] = found.get(item.line, 0) + item.spill_bytes
    return found


def of_file(profile: Profile, file: str) -> Profile:
    """Return the profile with the counts and code of one file only."""

    def only(launch: LaunchProfile) -> LaunchProfile:
        code = launch.code and replace(
            launch.code, lines=tuple(one for one in launch.code.lines if one.file == file)
        )
        return replace(launch, lines=tuple(one for one in launch.lines if one.file == file), code=code)

    return replace(profile, launches=tuple(only(launch) for launch in profile.launches))
