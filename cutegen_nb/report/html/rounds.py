"""HTML view of a session's rounds: an overview table, and a section for each round."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.analysis.figures.spending import notes_of, usage_words
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.history.fewest_flops import fewest_flops
from cutegen_nb.analysis.history.prediction import round_scores
from cutegen_nb.analysis.history.row_figures import counted_figures, timed_figures
from cutegen_nb.analysis.history.summary import (
    RoundSummary,
    decision,
    estimated_time,
    parent_candidate,
    parent_round,
    relation_kind,
    revision,
    row,
    rows,
    simulated,
)
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Attempt, Round, opening
from cutegen_nb.core.session import Session
from cutegen_nb.report.html import correctness, counts, diagnosis, diff, timing
from cutegen_nb.report.html import layouts as layout_view
from cutegen_nb.report.html import lines as line_view
from cutegen_nb.report.html.code import listing
from cutegen_nb.report.markup import Style, fill


def overview(session: Session, *, style: Style = Style.RECORD) -> Markup:
    """Return a table with one row for each round."""
    counted = simulated(session)
    figures = (
        (("Estimate", True), ("Sectors", True), ("Warp instr.", True), ("Bytes ÷\u00a0least", True))
        if counted
        else (("Latency", True), ("Speedup (95 %)", True), ("Of roof", True))
    )
    # A column of its own, where PyTorch computed a part of any round by the library policy.
    with_library = any(item.library for item in rows(session))
    columns = (
        ("Round", False),
        ("Strategy and stage", False),
        ("Verdict", False),
        *((("Library", False),) if with_library else ()),
        ("Against the best before it", False),
        *figures,
        ("Decision", False),
    )
    return fill(
        "overview",
        style,
        columns=columns,
        rows=[(item, _figures(item, counted=counted)) for item in rows(session)],
        stages={revision(item): item.stage.value for item in session.rounds},
        caption="Figures are simulated counts of one call" if counted else "Figures are measured",
        relation_kind=relation_kind,
        with_library=with_library,
    )


def _figures(item: RoundSummary, *, counted: bool) -> tuple[str, ...]:
    return counted_figures(item) if counted else timed_figures(item, item.baseline)


def section(session: Session, item: Round, *, style: Style = Style.RECORD) -> Markup:
    """Return everything known of one round, in the order in which it happened."""
    candidate, evaluation = item.candidate, item.evaluation
    parts: list[tuple[str, Markup]] = []
    if candidate:
        parts.append(("Change", _change(session, item, candidate, style)))
    if candidate and evaluation:
        parts.append(("Correctness", correctness.render(evaluation, candidate.source, style=style)))
        parts += _work(session, item, evaluation, candidate, style)
    last = next((attempt for attempt in reversed(item.attempts) if attempt.candidate), None)
    final = last.candidate if last else None
    return fill(
        "round",
        style,
        item=item,
        opening=opening(item.attempts) if item.attempts else None,
        # Every exchange before the final one, since repairs are part of the record.
        attempts=[
            _attempt(n, a, final, style) for n, a in enumerate(item.attempts, start=1) if a is not last
        ],
        attempts_title=_attempts_title(item.attempts, last),
        parts=parts,
        row=row(session, item),
        parents=_parents(session, item),
        claims=[line.replace("`", "") for line in round_scores(session, item)],
        decision=decision(item),
        usage=usage_words(item.usage),
        notes=notes_of(item.attempts),
    )


def brief_section(session: Session, item: Round, found: RoundSummary) -> Markup:
    """Return the reason, the decisions and their words of one round, for a page with many rounds."""
    return fill("brief_round", Style.PAGE, name=session.name, item=item, row=found)


def _parents(session: Session, item: Round) -> list[str]:
    """Return the labels of the kernels that a slot started from."""
    made = (
        session.round_of(digest, before=item.number) for digest in (item.slot.parents if item.slot else ())
    )
    return [revision(one) for one in made if one is not None]


def _attempts_title(attempts: Sequence[Attempt], last: Attempt | None) -> str:
    """Return the heading of the attempts beside `last`, the one with the final candidate."""
    if last is None:
        return "Attempts"
    return "Attempts before it" if last is attempts[-1] else "Attempts beside it"


def _attempt(number: int, attempt: Attempt, final: Candidate | None, style: Style) -> Markup:
    evaluation, candidate = attempt.evaluation, attempt.candidate
    source = candidate.source if candidate else ""
    change = Markup()
    if candidate and final and candidate.digest != final.digest:
        names = {"old_name": f"attempt {number}", "new_name": "the round’s end"}
        change = diff.render(source, final.source, style=style, **names)
    found = evaluation.findings if evaluation else ()
    return fill(
        "attempt",
        style,
        number=number,
        attempt=attempt,
        findings=correctness.findings(found, source, style=style, told=evaluation.summary)
        if evaluation and found
        else "",
        log=correctness.log(evaluation.log, style=style) if evaluation else "",
        change=change,
        source=listing(source, style) if candidate and not final else "",
    )


def _change(session: Session, item: Round, candidate: Candidate, style: Style) -> Markup:
    parent, origin = parent_candidate(session, item), parent_round(session, item)
    if parent is None or origin is None:
        return fill("first_source", style, source=candidate.source, listing=listing(candidate.source, style))
    return diff.render(
        parent.source, candidate.source, style=style, old_name=revision(origin), new_name=revision(item)
    )


def _work(
    session: Session, item: Round, evaluation: Evaluation, candidate: Candidate, style: Style
) -> list[tuple[str, Markup]]:
    """Return titles and parts on a kernel's work: times, diagnosis, counts, code, layouts; some are empty."""
    parent = parent_round(session, item)
    before = parent.evaluation if parent else None
    names = (revision(parent) if parent else "parent", revision(item))
    parts, found = [], None
    if evaluation.timing:
        roof = place(session.facts, session.device, evaluation)
        parts.append(("Times", timing.render(evaluation.timing, roof, style=style)))
    if evaluation.passed and (evaluation.profile or evaluation.timing):
        found = diagnose(session.facts, evaluation, session.device, fewest_flops(session))
        estimated = estimated_time(session, item)
        parts.append(("Diagnosis", diagnosis.render(found, estimated, style=style)))
    if evaluation.profile:
        lines = line_view.render(evaluation.profile, candidate.source, diagnosis=found, style=style)
        parent_profile = before.profile if before else None
        body = counts.render(evaluation.profile, parent=parent_profile, names=names, style=style)
        code = counts.compiled(evaluation.profile, style=style)
        parts += [("Lines", lines), ("Counts", body), ("Compiled code", code)]
    drawn = style is Style.PAGE
    layouts = layout_view.render(evaluation, parent=before, names=names, style=style, drawn=drawn)
    return [*parts, ("Layouts", layouts)]
