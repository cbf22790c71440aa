"""The rounds of a session: a table of all, and a section for each."""

from __future__ import annotations

from cutegen_nb.analysis.cause import Cause
from cutegen_nb.analysis.diagnose import Diagnosis, diagnose
from cutegen_nb.analysis.prediction import round_scores
from cutegen_nb.analysis.quantity import duration, moment
from cutegen_nb.analysis.roofline import place
from cutegen_nb.analysis.spent import notes_of, usage_words
from cutegen_nb.analysis.summary import (
    RoundSummary,
    counted_figures,
    decision,
    deed,
    parent_candidate,
    parent_round,
    revision,
    rows,
    simulated,
    standing,
    timed_figures,
    who,
)
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Attempt, Round
from cutegen_nb.core.session import Session
from cutegen_nb.report import correctness_view, counts_view, diff_view, layout_view, line_view, timing_view
from cutegen_nb.report.code import listing
from cutegen_nb.report.markup import Style, badge, folded, look, preformatted, safe, table


def overview(session: Session, *, style: Style = Style.RECORD) -> str:
    """One row a round."""
    counted = simulated(session)
    figures = (
        (("Sectors", True), ("Warp instr.", True), ("Bytes ÷ least", True))
        if counted
        else (("Latency", True), ("Speedup (95 %)", True), ("Of roof", True))
    )
    columns = (
        ("Round", False),
        ("Strategy and stage", False),
        ("Verdict", False),
        ("Against the best before it", False),
        *figures,
        ("Decision", False),
    )
    stages = {revision(item): item.stage.value for item in session.rounds}
    body = tuple(
        _overview_row(item, stages.get(item.revision, ""), style, counted=counted) for item in rows(session)
    )
    caption = "Figures are simulated counts of one call" if counted else "Figures are measured"
    return table(style, caption, columns, body)


def section(session: Session, item: Round, *, style: Style = Style.RECORD) -> str:
    """Everything that is known of one round, in the order in which it happened."""
    candidate, evaluation = item.candidate, item.evaluation
    parts = [_asked(item, style), _failed_attempts(item, style)]
    if candidate:
        parts.append(_rationale(candidate, style))
        parts.append(_part("Change", _change(session, item, candidate, style)))
    if candidate is None or evaluation is None:
        row = next(row for row in rows(session) if row.revision == revision(item))
        words = row.reason or "The round ended without an evaluation."
        parts.append(_part("Outcome", f"<p>{badge(style, 'bad', row.verdict)} {safe(words)}</p>"))
    else:
        parts.append(_part("Correctness", correctness_view.render(evaluation, candidate.source, style=style)))
        parts += [_work(session, item, evaluation, candidate, style), _claims(session, item, style)]
        if item.note:
            parts.append(f"<p>{safe(item.note)}</p>")
    parts.append(_decision(item, style))
    return "".join(parts)


def diagnosis(found: Diagnosis, *, style: Style = Style.RECORD) -> str:
    """A diagnosis: the bound, and each cause with its counters and what would refute it."""
    bound = f"<p><b>Bound by {safe(found.bound.value)}</b> ({safe(found.source)}). {safe(found.because)}</p>"
    read = "; ".join(f"{item.name} {item.value}" for item in found.readings)
    refuted = f" Refuted if {found.refuted_by}" if found.refuted_by else ""
    figures = f"<p{look(style, 'muted')}>{safe(read)}.{safe(refuted)}</p>" if read else ""
    zone = f"<p>{safe(found.zone.text())}</p>" if found.zone else ""
    if not found.causes:
        return f"{bound}{figures}{zone}<p>No waste stands out in the counts.</p>"
    items = "".join(_cause(cause, style) for cause in found.causes)
    led = "Likely causes, those of the whole launch and on the busiest unit first:"
    return f"{bound}{figures}{zone}<p>{led}</p><ol>{items}</ol>"


def _cause(cause: Cause, style: Style) -> str:
    where = f" (line {cause.line})" if cause.line else ""
    figures = "; ".join(f"{reading.name} {reading.value}" for reading in cause.readings)
    tried = f" Strategies: {safe(', '.join(cause.strategies))}." if cause.strategies else ""
    return (
        f"<li><b>{safe(cause.name)}</b>{where}: {safe(cause.statement)} "
        f"<span{look(style, 'muted')}>{safe(figures)}. Refuted if {safe(cause.refuted_by)}</span>{tried}</li>"
    )


def _part(title: str, body: str) -> str:
    return f"<h3>{safe(title)}</h3>{body}" if body else ""


def _overview_row(item: RoundSummary, stage: str, style: Style, *, counted: bool) -> tuple[str, ...]:
    name = (
        f'<a href="#{item.revision}">{item.revision}</a>'
        if style is Style.PAGE
        else f"<b>{item.revision}</b>"
    )
    star = f" {badge(style, 'good', 'best')}" if item.best else ""
    verdict = badge(style, "good" if item.passed else "bad", item.verdict)
    relation = ""
    if item.relation:
        kind = standing(item)
        relation = badge(style, kind, item.relation)
    # A figure and its unit stay on one line.
    reason = safe(item.reason).replace(" %", "&nbsp;%")
    against = f"{relation} <span{look(style, 'muted')}>{reason}</span>"
    return (
        f"<span{look(style, 'name')}>{name}{star}</span>",
        _strategy(item, stage, style),
        verdict,
        against,
        *(counted_figures(item) if counted else timed_figures(item, safe(item.baseline))),
        _decided(item),
    )


def _strategy(item: RoundSummary, stage: str, style: Style) -> str:
    name = f"<span{look(style, 'name')}>{safe(item.strategy or 'first kernel')}</span>"
    return f"{name} <span{look(style, 'muted')}>{safe(stage)}</span>" if stage else name


def _decided(item: RoundSummary) -> str:
    if not item.decision:
        return "–"
    # A policy's reason is the comparison, which stands in the row already.
    words = f": “{safe(item.words)}”" if item.words and item.reason not in item.words else ""
    return f"{safe(item.decision)} by {safe(who(item.decided_by))}{words}"


def _claims(session: Session, item: Round, style: Style) -> str:
    """What the strategy and its author said would move, against what was measured."""
    lines = "".join(f"<li>{safe(line.replace('`', ''))}</li>" for line in round_scores(session, item))
    return _part("Claims", f"<ul{look(style, 'findings')}>{lines}</ul>") if lines else ""


def _asked(item: Round, style: Style) -> str:
    """The stage's reason, the strategy, what it should move, and the prompt."""
    parts = []
    if item.stage_because:
        parts.append(f"<p>Stage {safe(item.stage.value)}: {safe(item.stage_because)}.</p>")
    if item.strategy:
        words = f"<b>{safe(item.strategy.name)}</b>: {safe(item.strategy.statement)}"
        parts.append(f"<p>{words} <span{look(style, 'muted')}>({safe(item.strategy.source)})</span></p>")
    else:
        parts.append("<p>No strategy yet: the first passing kernel is sought.</p>")
    parts += [
        f"<p>Prompt {safe(deed(made))} by {safe(who(made.by))}: “{safe(made.reason)}”</p>"
        for made in item.decisions
        if made.gate == "prompt" and made.reason
    ]
    if item.attempts:
        prompt = item.attempts[0].prompt
        text = f"{prompt.system}\n\n{prompt.user}".strip()
        parts.append(folded(style, f"Prompt ({len(text):,} characters)", preformatted(style, text)))
    return "".join(parts)


def _rationale(candidate: Candidate, style: Style) -> str:
    if not candidate.rationale.strip():
        return ""
    quote = f"<blockquote{look(style, 'quote')}>{safe(candidate.rationale.strip())}</blockquote>"
    return _part(f"Rationale of {candidate.author}", quote)


def _failed_attempts(item: Round, style: Style) -> str:
    """Every exchange before the one the round ended with: repairs are part of the record."""
    last = next((a for a in reversed(item.attempts) if a.candidate), None)
    failed = [(n, a) for n, a in enumerate(item.attempts, start=1) if a is not last]
    if not failed:
        return ""
    final = last.candidate if last else None
    body = "".join(_attempt(number, attempt, final, style) for number, attempt in failed)
    return _part("Attempts before it" if last else "Attempts", body)


def _attempt(number: int, attempt: Attempt, final: Candidate | None, style: Style) -> str:
    evaluation, candidate = attempt.evaluation, attempt.candidate
    label = evaluation.label if evaluation else "no usable reply"
    words = evaluation.summary if evaluation else attempt.problem
    parts = [f"<p>{badge(style, 'bad', label)} Attempt {number}, {safe(attempt.purpose)}: {safe(words)}</p>"]
    if evaluation and attempt.problem:
        parts.append(f"<p>{safe(attempt.problem)}</p>")
    if evaluation and evaluation.findings:
        source = candidate.source if candidate else ""
        parts.append(correctness_view.findings(evaluation.findings, source, style=style))
    if evaluation and evaluation.log.strip():
        parts.append(correctness_view.log(evaluation.log, style=style))
    if candidate and final and candidate.digest != final.digest:
        fix = diff_view.render(
            candidate.source,
            final.source,
            style=style,
            old_name=f"attempt {number}",
            new_name="the round’s end",
        )
        parts.append(folded(style, "What was changed afterwards", fix))
    elif candidate and not final:
        parts.append(folded(style, "Its source", listing(candidate.source, style)))
    elif attempt.reply and attempt.reply.text.strip() and not candidate:
        parts.append(folded(style, "The reply", preformatted(style, attempt.reply.text)))
    if attempt.reply and attempt.reply.reasoning and not candidate:
        parts.append(folded(style, "Its reasoning", preformatted(style, attempt.reply.reasoning)))
    return f"<div{look(style, 'attempt')}>{''.join(parts)}</div>"


def _change(session: Session, item: Round, candidate: Candidate, style: Style) -> str:
    parent, origin = parent_candidate(session, item), parent_round(session, item)
    if parent is None or origin is None:
        number = len(candidate.source.splitlines())
        body = f"<div{look(style, 'card')}>{listing(candidate.source, style)}</div>"
        return folded(style, f"First source of this lineage, {number} lines", body)
    return diff_view.render(
        parent.source, candidate.source, style=style, old_name=revision(origin), new_name=revision(item)
    )


def _work(session: Session, item: Round, evaluation: Evaluation, candidate: Candidate, style: Style) -> str:
    parent = parent_round(session, item)
    before = parent.evaluation if parent else None
    names = (revision(parent) if parent else "parent", revision(item))
    parts, found = [], None
    if evaluation.timing:
        roof = place(session.facts, session.device, evaluation)
        parts.append(_part("Times", timing_view.render(evaluation.timing, roof, style=style)))
    if evaluation.passed and (evaluation.profile or evaluation.timing):
        found = diagnose(session.facts, evaluation, session.device)
        parts.append(_part("Diagnosis", diagnosis(found, style=style)))
    if evaluation.profile:
        lines = line_view.render(evaluation.profile, candidate.source, diagnosis=found, style=style)
        parts.append(_part("Lines", lines))
        parent_profile = before.profile if before else None
        body = counts_view.render(evaluation.profile, parent=parent_profile, names=names, style=style)
        parts.append(_part("Counts", body))
        parts.append(_part("Compiled code", counts_view.compiled(evaluation.profile, style=style)))
    layouts = layout_view.render(
        evaluation, parent=before, names=names, style=style, drawn=style is Style.PAGE
    )
    parts.append(_part("Layouts", _pictures_folded(layouts, style)))
    return "".join(parts)


def _pictures_folded(layouts: str, style: Style) -> str:
    """Layouts that are drawn are folded away: they take more room than the rest of a round."""
    return folded(style, "Drawings, before and after", layouts) if "<svg" in layouts else layouts


def _decision(item: Round, style: Style) -> str:
    made = decision(item)
    told = usage_words(item.usage)
    notes = "".join(f" {safe(note)}." for note in notes_of(item.attempts))
    cost = f"; {told}" if told else ""
    words = f"Started {safe(moment(item.started_at))}, took {duration(item.seconds)}{cost}.{notes}"
    spent = f"<span{look(style, 'muted')}>{words}</span>"
    if made is None:
        return _part("Decision", f"<p>None was asked for. {spent}</p>")
    kind = "good" if item.approved else "bad" if deed(made) == "rejected" else "neutral"
    quoted = f" “{safe(made.reason)}”" if made.reason else ""
    return _part(
        "Decision", f"<p>{badge(style, kind, deed(made))} by {safe(who(made.by))}.{quoted} {spent}</p>"
    )
