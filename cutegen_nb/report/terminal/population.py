"""Text of a population for a terminal: its kernels in a table, then its epochs."""

from __future__ import annotations

from cutegen_nb.analysis.figures.quantity import times
from cutegen_nb.analysis.hardware.zone import zone
from cutegen_nb.analysis.population.epochs import EpochSummary, epoch_line, epoch_summaries
from cutegen_nb.analysis.population.summary import PopulationRow, population_rows, speed_source
from cutegen_nb.core.round import Epoch
from cutegen_nb.core.session import Session
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.fitting import paragraph, table_lines
from cutegen_nb.report.terminal.session import cut

_DASH = "–"


def population_table(session: Session, draft: Epoch | None = None) -> str:
    """Format a row for each kernel, the claims that are not fulfilled, and each epoch with its decisions.

    `draft` is an epoch that is not over yet. A chain gives one sentence.
    """
    found = population_rows(session, draft)
    if not any(row.epoch for row in found):
        return f"{session.name} is a chain of rounds: `--population N` evolves several kernels side by side."
    best = session.best.number if session.best else None
    heading = ("kernel", "epoch", "move", "from", "strategy", "speed", "limit", "in force")
    body = [
        (
            f"{row.label}{_mark(row, best)}",
            str(row.epoch or _DASH),
            row.move or _DASH,
            " + ".join(f"r{number}" for number in row.parents) or _DASH,
            cut(row.strategy),
            times(row.speed) if row.speed is not None else row.outcome,
            row.bound or _DASH,
            ", ".join(row.carries) or _DASH,
        )
        for row in found
    ]
    source = speed_source(session)
    key = f"★ best   * goes on   ! pinned   speed: the first kernel’s time ÷ the kernel’s, {source}"
    place = zone(session.facts, session.device)
    claims = [f"{row.label} does not fulfil: {words}" for row in found for words in row.corrections]
    claims += [
        f"{row.label} claims {', '.join(row.not_told)}, not told by counts" for row in found if row.not_told
    ]
    claims += [f"{row.label}: {row.note}" for row in found if row.note]
    tail = [key, *([place.text()] if place else []), *claims]
    lines = [*table_lines([heading, *body], right={5}), ""]
    lines += [line for text in tail for line in paragraph(text)]
    lines += [line for epoch in epoch_summaries(session, draft) for line in ["", *_epoch(epoch)]]
    return visible("\n".join(lines))


def _mark(row: PopulationRow, best: int | None) -> str:
    signs = "".join((
        "★" if row.number == best else "",
        "!" if row.pinned else "*" if row.member else "",
    ))  # fmt: skip
    return f" {signs}" if signs else ""


def _epoch(epoch: EpochSummary) -> list[str]:
    said = [f"timed in the same turns: {words}" for words in epoch.duels] + list(epoch.decisions)
    return [*paragraph(epoch_line(epoch)), *(line for words in said for line in paragraph(words, "  "))]
