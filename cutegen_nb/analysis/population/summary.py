"""Summary of a population: a row for each kernel, with its descent, speed and optimisations; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.analysis.figures.quantity import times
from cutegen_nb.analysis.population.members import candidates, member_round, speeds
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.round import Epoch, Round
from cutegen_nb.core.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationRow:
    """Kernel of a population in words."""

    number: int
    """Number of its round."""
    epoch: int
    """Epoch that it was made in; 0 for a first kernel."""
    move: str
    """Move of its slot: ``cross``; empty for a first kernel."""
    parents: tuple[int, ...]
    """Numbers of the rounds that it descends from."""
    strategy: str
    """Title of the round: the name of its strategy, or ``first kernel``."""
    outcome: str
    """Verdict or comparison, in one or two words."""
    speed: float | None
    """First kernel's time ÷ its time, measured or estimated; None where it did not pass."""
    carries: tuple[str, ...]
    """Optimisations in force."""
    member: bool
    """True if it goes on to the next epoch."""
    pinned: bool
    """True if a person pinned it."""
    not_told: tuple[str, ...] = ()
    """Optimisations that its author claims, and of which nothing tells."""
    corrections: tuple[str, ...] = ()
    """Claims of the strategy that the kernel does not fulfil."""
    statement: str = ""
    """Statement of the strategy as it was asked for; empty for a first kernel."""
    source: str = ""
    """Writer of the strategy, one of `Origin`; empty for a first kernel."""
    aligned: str = ""
    """Statement as the code carries it out; empty where nothing passed."""
    aligned_by: str = ""
    """Author of `aligned`; ``features`` where it was derived from the kernel alone."""
    seconds: float | None = None
    """Seconds of one call, measured or estimated; None where neither is known."""
    bound: str = ""
    """Limit on its speed: ``memory``, ``compute`` or ``latency``; empty where it did not pass."""
    note: str = ""
    """Reason why it has no kernel that passed; empty where it has."""
    member_of: tuple[int, ...] = ()
    """Epochs whose selection kept it."""

    @property
    def label(self) -> str:
        """Name of the revision: ``r3``."""
        return f"r{self.number}"

    @property
    def optimisations(self) -> str:
        """Optimisations in force, and those only claimed; empty without any."""
        claimed = f"claimed, not told by counts: {', '.join(self.not_told)}" if self.not_told else ""
        return "; ".join(filter(None, [", ".join(self.carries), claimed]))


def population_rows(session: Session, draft: Epoch | None = None) -> tuple[PopulationRow, ...]:
    """Return a row for each round, oldest first; `draft` is an epoch that is not over yet."""
    epochs = (*session.epochs, draft) if draft else session.epochs
    decisions = draft.decisions if draft else ()
    duels = draft.duels if draft else ()
    pinned = {member.digest for member in candidates(session, decisions, duels) if member.pinned}
    by_digest = speeds(session, duels)
    return tuple(_row(session, item, epochs, pinned, by_digest) for item in session.rounds)


def _row(
    session: Session, item: Round, epochs: Sequence[Epoch], pinned: set[str], by_digest: dict[str, float]
) -> PopulationRow:
    digest = item.candidate.digest if item.candidate else ""
    passed = item.evaluation is not None and item.evaluation.passed
    kept = tuple(
        epoch.number
        for epoch in epochs
        if digest in epoch.members and member_round(session, digest, epoch.number) is item
    )
    parents = (session.round_of(one, before=item.number) for one in item.slot.parents) if item.slot else ()
    return PopulationRow(
        number=item.number,
        epoch=item.slot.epoch if item.slot else 0,
        move=item.slot.move.value if item.slot else "",
        parents=tuple(one.number for one in parents if one is not None),
        strategy=item.title,
        outcome=_outcome(item),
        speed=by_digest.get(digest) if passed else None,
        carries=tuple(one.value for one in item.aligned.in_force) if item.aligned else (),
        not_told=tuple(one.value for one in item.aligned.not_told) if item.aligned else (),
        member=bool(epochs) and epochs[-1].number in kept,
        pinned=digest in pinned and session.round_of(digest) is item,
        corrections=item.aligned.unfulfilled if item.aligned else (),
        statement=item.strategy.statement if item.strategy else "",
        source=item.strategy.source if item.strategy else "",
        aligned=item.aligned.statement if item.aligned else "",
        aligned_by=item.aligned.by if item.aligned else "",
        seconds=_seconds(session, item),
        bound=diagnose(session.facts, item.evaluation, session.device).bound.value if passed else "",
        note="" if passed else (item.evaluation.summary if item.evaluation else item.note),
        member_of=kept,
    )


def _seconds(session: Session, item: Round) -> float | None:
    """Seconds of one call: measured here, else on another machine, else estimated at full size."""
    elsewhere = session.measured(item)
    for evaluation in (item.evaluation, elsewhere.evaluation if elsewhere else None):
        if evaluation is not None and evaluation.timing is not None:
            return evaluation.timing.median_ms / 1e3
    return item.comparison.estimated_s if item.comparison else None


def speed_source(session: Session) -> str:
    """Return ``measured`` or ``estimated``, the source of the speeds of a population."""
    return "measured" if session.device.kind is DeviceKind.GPU or session.measurements else "estimated"


def _outcome(item: Round) -> str:
    if item.comparison is not None:
        return item.comparison.words
    return item.evaluation.label if item.evaluation else "no candidate"


def population_text(session: Session, draft: Epoch | None = None) -> str:
    """Format the population as lines of a table, members marked, with the duels and the champion."""
    rows = population_rows(session, draft)
    epoch = draft or (session.epochs[-1] if session.epochs else None)
    number = epoch.number if epoch else 0
    head = f"Epoch {number} of {session.name}; speed against the first kernel, {speed_source(session)}"
    lines = [f"{head}; * goes on, ! pinned"]
    lines += [_line(row) for row in rows if row.member or row.epoch in {0, number}]
    lines += [f"  timed against one another: {duel.reason}" for duel in (epoch.duels if epoch else ())]
    if epoch and epoch.restarted:
        lines.append(
            "  no gain for some epochs: the next one starts anew from the fastest and the first kernel"
        )
    return "\n".join(lines)


def _line(row: PopulationRow) -> str:
    mark = "!" if row.pinned else "*" if row.member else " "
    descent = f" {row.move} of {', '.join(f'r{one}' for one in row.parents)}" if row.parents else ""
    speed = times(row.speed) if row.speed is not None else "-"
    carries = f"; {row.optimisations}" if row.optimisations else ""
    text = f"{mark} {row.label:>4}  {speed:>7}  {row.strategy}:{descent} {row.outcome}{carries}"
    return "\n".join([text, *(f"         not fulfilled: {line}" for line in row.corrections)])
