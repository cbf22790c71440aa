"""What came of running a whole program on the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.core.profile import Counters, LaunchProfile, LineCounters, Profile, ProfileSource


class Ending(StrEnum):
    """How the program ended."""

    FINISHED = "finished"
    RAISED = "raised"
    EXITED = "exited"
    KILLED = "killed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """Launches of one kernel with one configuration, wherever they stand in the program."""

    times: int
    """How many there were."""
    profile: LaunchProfile
    """Their counts, all together; what does not add up is that of the first."""

    def and_one_more(self, profile: LaunchProfile) -> Launches:
        """The same with another launch of this kernel and configuration."""
        lines = {(item.file, item.line): item.counters for item in self.profile.lines}
        for item in profile.lines:
            place = (item.file, item.line)
            lines[place] = lines.get(place, Counters()) + item.counters
        total = replace(
            self.profile,
            counters=self.profile.counters + profile.counters,
            lines=tuple(
                LineCounters(file=file, line=line, counters=lines[file, line]) for file, line in sorted(lines)
            ),
            gmem_distinct_sectors=self.profile.gmem_distinct_sectors + profile.gmem_distinct_sectors,
        )
        return Launches(times=self.times + 1, profile=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """One run of a program."""

    script: str
    """As it was named."""
    arguments: tuple[str, ...]
    """What it was given."""
    architecture: str
    """What its kernels were compiled for: ``sm_80``."""
    ending: Ending
    """How it ended."""
    exit_status: int
    """The program's own, as a shell reports it: 128 + signal for a killed one."""
    sentence: str = ""
    """What happened where it did not simply finish, with the next step; empty otherwise."""
    launches: tuple[Launches, ...] = ()
    """By kernel and configuration, in the order of their first launch; only launches that came to an end."""
    findings: tuple[Finding, ...] = ()
    """What the checks found, a stopped launch's fault included."""
    not_simulated: str = ""
    """What of the program the simulator could not run or answer, in a sentence; empty where nothing."""
    sources: dict[str, str] = field(default_factory=dict)
    """Text of each file that counts or findings have lines of, by its path."""

    layouts: tuple[LayoutRecord, ...] = ()
    """Layouts that the program's own files give to what was compiled; their lines are of those files."""

    @property
    def launch_count(self) -> int:
        """Launches that came to an end."""
        return sum(item.times for item in self.launches)

    @property
    def sampled(self) -> bool:
        """Whether a launch ran only some of its CTAs, so that results are incomplete."""
        return any(item.profile.ctas_run is not None for item in self.launches)

    @property
    def decided(self) -> bool:
        """Whether a finding stands against the program's kernels."""
        return any(item.severity is Severity.DECIDES for item in self.findings)

    @property
    def profile(self) -> Profile:
        """The counts as every view of counts takes them."""
        return Profile(
            source=ProfileSource.SIMULATED,
            device=self.architecture,
            launches=tuple(item.profile for item in self.launches),
        )
