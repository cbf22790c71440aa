"""Result of running a whole program on the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.core.profile import Counters, LaunchProfile, LineCounters, Profile, ProfileSource


class Ending(StrEnum):
    """End of a simulated program."""

    FINISHED = "finished"
    """End of the script, or an exit with status 0."""
    RAISED = "raised"
    """An exception that the script did not catch."""
    EXITED = "exited"
    """An exit with another status."""
    KILLED = "killed"
    """A signal ended the process."""
    TIMED_OUT = "timed out"
    """The deadline ended the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """All launches of one kernel with one configuration in a program."""

    times: int
    """Number of launches."""
    profile: LaunchProfile
    """Summed counts; fields that do not add up are those of the first launch."""

    def and_one_more(self, profile: LaunchProfile) -> Launches:
        """Return a copy with one more launch of this kernel and configuration added."""
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
    """One run of a program on the simulator."""

    script: str
    """Script, as named on the command line."""
    arguments: tuple[str, ...]
    """Arguments of the program."""
    architecture: str
    """Architecture that the kernels were compiled for: ``sm_80``."""
    ending: Ending
    """End of the run."""
    exit_status: int
    """Exit status as a shell reports it: 128 + signal for a killed program."""
    sentence: str = ""
    """Cause of an end other than FINISHED, with the next step; empty otherwise."""
    launches: tuple[Launches, ...] = ()
    """Completed launches by kernel and configuration, in the order of their first launch."""
    findings: tuple[Finding, ...] = ()
    """Findings of the checks, the fault of a stopped launch included."""
    not_simulated: str = ""
    """Part of the program that the simulator could not run, in a sentence; empty where it ran all."""
    sources: dict[str, str] = field(default_factory=dict)
    """Text of each file with lines in counts or findings, by path."""

    layouts: tuple[LayoutRecord, ...] = ()
    """Layouts in the program's own files, with lines of those files."""

    @property
    def launch_count(self) -> int:
        """Number of completed launches."""
        return sum(item.times for item in self.launches)

    @property
    def sampled(self) -> bool:
        """True if a launch ran only some of its CTAs, so that results are incomplete."""
        return any(item.profile.ctas_run is not None for item in self.launches)

    @property
    def decided(self) -> bool:
        """True if a finding decides against the program's kernels."""
        return any(item.severity is Severity.DECIDES for item in self.findings)

    @property
    def profile(self) -> Profile:
        """The counts as a `Profile`."""
        return Profile(
            source=ProfileSource.SIMULATED,
            device=self.architecture,
            launches=tuple(item.profile for item in self.launches),
        )
