"""Text table of a session's rounds and its result for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cutegen_nb.analysis.figures.quantity import duration, interval, share, times
from cutegen_nb.analysis.history.ended import EndKind, end_kind, ended_words
from cutegen_nb.analysis.history.row_figures import counted_figures
from cutegen_nb.analysis.history.summary import (
    RoundSummary,
    best_words,
    hardware,
    missing_words,
    outcome,
    roof_device,
    rows,
    simulated,
    size_words,
)
from cutegen_nb.analysis.population.summary import population_text
from cutegen_nb.core.evaluation import NotJudged, NotJudgedReason
from cutegen_nb.core.profile import function_name
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.timing import BaselineTiming
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.fitting import paragraph, table_lines
from cutegen_nb.report.terminal.next_steps import next_step
from cutegen_nb.report.terminal.verdict import (
    VERBOSE,
    VerdictLine,
    VerdictSetting,
    fitted,
    next_text,
    verdict_rows,
)

_MANGLED = re.compile(r"\bkernel_cutlass_\w+")
"""Name that the compiler gives a kernel."""
_WIDEST = 28
"""Most characters of a name; the table has to fit 100 columns."""
_DASH = "–"


def table(session: Session) -> str:
    """Format the rounds in aligned columns, then the session's result; ends with a newline."""
    ended = paragraph(f"Ended: {visible(ended_words(session.stopped))}") if session.stopped else []
    return "\n".join([*rounds_lines(session), "", *paragraph(visible(outcome(session))), *ended]) + "\n"


def rounds_lines(session: Session) -> list[str]:
    """Format a title, the rounds in aligned columns, and the members of a population."""
    evolved = ["", *population_text(session).splitlines()] if session.epochs else []
    return [*_rounds(session), *evolved]


def _rounds(session: Session) -> list[str]:
    counted = simulated(session)
    source = _simulated_words(session) if counted else f"measured on {session.device.name}"
    title = paragraph(visible(f"{session.name}: {session.facts.workload_class.value}, {source}"))
    title += paragraph(size_words(session)) if size_words(session) else []
    found = rows(session)
    if not found:
        return title
    if counted:
        heading = ("estimate", "sectors", "warp instr.", "÷ least")
        return [*title, *_table(heading, [(item, counted_figures(item)) for item in found])]
    wide = _timed(found, with_interval=True)
    # Without a rule line the table was split into blocks; dropping the intervals may keep it a table.
    is_table = any(line.startswith("─") for line in wide)
    return [*title, *(wide if is_table else _timed(found, with_interval=False))]


def _simulated_words(session: Session) -> str:
    words = "simulated counts, no measured times"
    is_estimated = roof_device(session) is not session.device
    return f"{words}, estimates for {hardware(session)}" if is_estimated else words


def ending_lines(session: Session, report: str | None) -> list[str]:
    """Format the session's result in at most twelve lines: the best revision, or why there is none."""
    shown = shown_round(session)
    if shown is None or shown.candidate is None or shown.evaluation is None:
        words = [
            outcome(session),
            *_no_kernel(session),
            *([f"Ended: {ended_words(session.stopped)}"] if session.stopped else []),
            f"report: {report or 'none'}",
        ]
        if session.stopped and session.author == "offline":
            words.append(next_text(next_step(NotJudged(reason=NotJudgedReason.DECLINED))))
        elif end_kind(session.stopped) is EndKind.BUDGET:
            words.append("Next: the report shows each request and reply; try another model, or more rounds.")
        return fitted([VerdictLine(text=text) for text in words])
    evaluation = shown.evaluation
    setting = VerdictSetting(source=shown.candidate.source, facts=session.facts, device=session.device)
    said = outcome(session)
    if session.best is shown and evaluation.timing:  # its times are told below
        said = " ".join(part for part in (best_words(session, shown), missing_words(session, shown)) if part)
    head, *rest = verdict_rows(evaluation, setting, counted=session.best is not shown)
    export = (
        f"`cutegen-nb export {session.name} -o {session.name}_kernel.py` judges it at tier C and writes it"
    )
    return fitted(
        [
            VerdictLine(text=said),
            VerdictLine(text=f"r{shown.number}: {head.text}"),
            *_no_estimate(session),
            *rest,
            *([VerdictLine(text=f"Ended: {ended_words(session.stopped)}")] if session.stopped else []),
            VerdictLine(text=f"report: {report or 'none'}"),
            VerdictLine(text=next_text(next_step(evaluation.outcome) or export, VERBOSE)),
        ]
    )


def _no_estimate(session: Session) -> list[VerdictLine]:
    """Name the kernels for which no time was estimated, with the reason for the last of them."""
    rounds, reason = [], ""
    for item in session.rounds:
        sample = item.evaluation.full_size if item.evaluation else None
        if item.candidate and sample and sample.missing and not sample.launches:
            rounds.append(f"r{item.number}")
            reason = _unmangled(sample.missing, item.candidate.source).partition(". ")[0].rstrip(".")
    return [VerdictLine(text=f"No estimate in {', '.join(rounds)}: {reason}.")] if rounds else []


def _unmangled(text: str, source: str) -> str:
    """Return a text in which kernels have the names of their functions in `source`."""
    return _MANGLED.sub(lambda name: function_name(name[0], source), text)


def _no_kernel(session: Session) -> list[str]:
    """Say why the last round brought no kernel, unless the session ended for that reason."""
    last = session.rounds[-1] if session.rounds else None
    if last is None or not last.note or last.note == session.stopped:
        return []
    return [f"No kernel came in r{last.number}: {last.note.rstrip('.')}."]


def shown_round(session: Session) -> Round | None:
    """Return the best round, or without one the last that was judged; None if none was."""
    judged = (item for item in reversed(session.rounds) if item.evaluation and item.candidate)
    return session.best or next(judged, None)


def _table(heading: Sequence[str], body: Sequence[tuple[RoundSummary, Sequence[str]]]) -> list[str]:
    # A column of its own, where PyTorch computed a part of any round by the library policy.
    with_library = any(item.library for item, _ in body)
    library = ("library",) if with_library else ()
    names = ("round", "strategy", "verdict", *library, "against best", *heading, "decision")
    cells = [
        (
            f"{item.revision}{' *' if item.best else ''}",
            cut(f"{item.move}: {item.strategy}" if item.move not in {"", "extend"} else item.strategy)
            or _DASH,
            item.verdict,
            *([item.library or _DASH] if with_library else []),
            item.relation_words or _DASH,
            *figures,
            item.decision or _DASH,
        )
        for item, figures in body
    ]
    first = names.index("against best") + 1
    return table_lines([names, *cells], right=set(range(first, first + len(heading))))


def _timed(found: Sequence[RoundSummary], *, with_interval: bool) -> list[str]:
    """Return latency, the speedup over every baseline of any round, and the share of the roof."""
    of_rounds = [[*(one.name for one in item.baselines), *item.missing] for item in found]
    names = list(dict.fromkeys(name for listed in of_rounds for name in listed))
    heading = ("latency", *(f"over {name}" if with_interval else name for name in names), "of roof")
    return _table(heading, [(item, _figures(item, names, with_interval=with_interval)) for item in found])


def _figures(item: RoundSummary, names: Sequence[str], *, with_interval: bool) -> list[str]:
    over = {one.name: _sped(one, with_interval=with_interval) for one in item.baselines}
    over |= dict.fromkeys(item.missing, "not had")
    return [
        _DASH if item.median_ms is None else duration(item.median_ms / 1e3),
        *(over.get(name, _DASH) for name in names),
        _DASH if item.sol_fraction is None else share(item.sol_fraction),
    ]


def _sped(one: BaselineTiming, *, with_interval: bool) -> str:
    return interval(one.speedup, one.speedup_low, one.speedup_high) if with_interval else times(one.speedup)


def cut(name: str) -> str:
    """Return a name on one line, with invisible characters written out, cut to the width of a column."""
    shown = visible(name).replace("\n", " ").replace("\t", " ")
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…"
