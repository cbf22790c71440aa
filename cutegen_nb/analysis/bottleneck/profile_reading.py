"""Reading of a profile: what it says of units, warps and source lines, gathered once for every cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.analysis.bottleneck.unit_utilisation import Load, heaviest, is_measured, loads, stalls
from cutegen_nb.analysis.source.lines import by_line
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReading:
    """Facts of one profile, before any of them is judged."""

    profile: Profile
    """Counts of one call."""
    counters: Counters
    """Sum of the counts of all launches."""
    lines: dict[int, Counters]
    """Counts of the candidate's own lines, by number."""
    longest: LaunchProfile
    """Launch that took longest; the first one without times."""
    is_measured: bool
    """True if hardware measured how busy the units were."""
    loads: tuple[Load, ...]
    """Measured utilisation of each unit, the busiest first; empty where not measured."""
    stalls: dict[str, float]
    """Waiting warps per issued instruction of the longest launch by reason, the most first."""

    @property
    def busiest(self) -> Load | None:
        """Unit of the largest measured utilisation; None where none was measured."""
        return self.loads[0] if self.loads else None

    @property
    def took_ms(self) -> float | None:
        """Measured time of all launches in ms; None where hardware measured nothing."""
        return 1e3 * sum(one.duration_s or 0.0 for one in self.profile.launches) if self.is_measured else None

    def hottest(self, cost: Callable[[Counters], int]) -> int:
        """Return the candidate's line with the greatest cost; 0 where none has any."""
        line = max(self.lines, key=lambda number: cost(self.lines[number]), default=0)
        return line if line and cost(self.lines[line]) > 0 else 0


def read(profile: Profile) -> ProfileReading:
    """Read a profile of at least one launch."""
    return ProfileReading(
        profile=profile,
        counters=profile.counters,
        lines=by_line(profile).own,
        longest=heaviest(profile),
        is_measured=is_measured(profile),
        loads=loads(profile),
        stalls=stalls(profile),
    )
