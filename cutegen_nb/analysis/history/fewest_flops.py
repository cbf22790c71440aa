"""Fewest floating-point operations that a kernel of a session was counted to do at full size; pure."""

from __future__ import annotations

from cutegen_nb.analysis.hardware.zone import CountedFlops
from cutegen_nb.core.profile import Counters, ProfileSource
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session

_FAR_FEWER = 0.5
"""Share of the reference's FLOPs from which a count shows another algebra. A smaller difference may come from
the rules of counting: a special function counts one in a kernel and may count several in the graph."""


def fewest_flops(session: Session) -> CountedFlops | None:
    """Return the fewest FLOPs of a kernel that stands, if far fewer than those of the reference's graph.

    None where no kernel was counted at full size, or none does with half of the reference's FLOPs.
    """
    counted = [(flops, item.number) for item in session.rounds if (flops := _counted(session, item))]
    flops, number = min(counted, default=(0, 0))
    if not flops or flops > _FAR_FEWER * session.facts.full.flops:
        return None
    return CountedFlops(flops=flops, kernel=f"r{number}")


def _counted(session: Session, item: Round) -> int:
    """FLOPs of one call of a round's kernel at full size; 0 where it does not stand or was not counted."""
    evaluation, elsewhere = item.evaluation, session.measured(item)
    if evaluation is None or not evaluation.stands or evaluation.accusing or evaluation.library:
        return 0  # the counters hold nothing of what PyTorch computed by the library policy
    if elsewhere is not None and not elsewhere.evaluation.passed:
        return 0
    if evaluation.full_size is not None and evaluation.full_size.launches:
        launches = evaluation.full_size.launches
        return sum((one.profile.counters for one in launches), Counters()).total_flops
    profile = evaluation.profile
    # The simulator counts at the scaled size, Nsight Compute at the full one.
    if profile is None or (profile.source is ProfileSource.SIMULATED and session.facts.scaled.rewrites):
        return 0
    return profile.counters.total_flops
