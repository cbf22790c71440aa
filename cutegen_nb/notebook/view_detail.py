"""One round, or the prompt that would be asked for it, as the panel shows it."""

from __future__ import annotations

from cutegen_nb.analysis.diagnose import diagnose
from cutegen_nb.analysis.quantity import duration, moment
from cutegen_nb.analysis.roofline import place
from cutegen_nb.analysis.spent import usage_words
from cutegen_nb.analysis.summary import decision, deed, parent_candidate, parent_round, revision, rows, who
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Attempt, Prompt, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.notebook.safe_markdown import markdown_html
from cutegen_nb.report import correctness_view, counts_view, layout_view, line_view, rounds, timing_view
from cutegen_nb.report.markup import visible

_LONGEST = 200_000
"""Characters of one text: more is in the store, and would only make the page slow."""

_UNDECIDED = ("No decision was asked for", "It ended before there was anything to decide on")
"""With a candidate, without one."""
_TITLE = 80
"""Characters of a name in a heading."""


def plain(text: str) -> str:
    """Text as it is, but for unpaired surrogates, which no message can carry."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def named(strategy: str) -> str:
    """A strategy's name for a heading: a model may give it pages."""
    shown = visible(strategy).strip()
    return shown if len(shown) <= _TITLE else f"{shown[:_TITLE].rstrip()} …"


def prompt_detail(session: Session, prompt: Prompt, key: str) -> dict[str, object]:
    """The request that waits to be sent."""
    number = len(session.rounds)
    parent = f"r{_number_of(session, prompt.parent)}" if prompt.parent else ""
    return {
        "kind": "prompt",
        "key": key,
        "round": number,
        "title": f"Request for r{number}",
        "author": visible(session.author),
        "from": parent,
        "strategy": _strategy(prompt.strategy),
        "system": visible(prompt.system),
        "user": plain(prompt.user),
    }


def round_detail(session: Session, item: Round, key: str, *, editable: bool) -> dict[str, object]:
    """Everything that is known of one round; `editable` while it waits for a decision."""
    candidate, evaluation = item.candidate, item.evaluation
    row = rows(session)[item.number]
    parent, origin = parent_candidate(session, item), parent_round(session, item)
    return {
        "kind": "round",
        "key": key,
        "round": item.number,
        "title": f"{row.revision} · {named(row.strategy) or 'first kernel'}",
        "verdict": row.verdict,
        "good": row.passed,
        "relation": row.relation,
        "reason": visible(row.reason),
        "best": row.best,
        "strategy": _unless_said(item.strategy, candidate),
        "rationale_html": markdown_html(candidate.rationale.strip()) if candidate else "",
        "rationale_by": visible(_author(candidate)) if candidate else "",
        "old": plain(parent.source) if parent else "",
        "old_name": revision(origin) if origin else "",
        "new": plain(candidate.source) if candidate else "",
        "new_name": row.revision,
        "has_source": candidate is not None,
        "editable": editable and candidate is not None,
        "tabs": _tabs(session, item, candidate, evaluation),
        "exchanges": [_exchange(attempt) for attempt in item.attempts],
        "spent": "" if editable else _spent(item),
    }


def _author(candidate: Candidate) -> str:
    """Who wrote it, as elsewhere on the page: a person by name, an author as it is called."""
    return who(candidate.author) if candidate.author.startswith("person:") else candidate.author


def _number_of(session: Session, candidate: Candidate) -> int:
    known = (r.number for r in session.rounds if r.candidate and r.candidate.digest == candidate.digest)
    return next(known, 0)


def _unless_said(strategy: Strategy | None, candidate: Candidate | None) -> dict[str, str] | None:
    """The strategy, unless the rationale below it says the same again; its name is in the title."""
    is_said = strategy is not None and candidate is not None and strategy.statement in candidate.rationale
    return None if is_said else _strategy(strategy)


def _strategy(strategy: Strategy | None) -> dict[str, str] | None:
    if strategy is None:
        return None
    return {
        "name": visible(strategy.name),
        "statement": visible(strategy.statement),
        "source": visible(strategy.source),
    }


def _tabs(
    session: Session, item: Round, candidate: Candidate | None, evaluation: Evaluation | None
) -> list[dict[str, str]]:
    if candidate is None or evaluation is None:
        return []
    tabs = [
        {
            "id": "correctness",
            "title": "Correctness",
            "body_html": correctness_view.render(evaluation, candidate.source),
        }
    ]
    if evaluation.timing:
        roof = place(session.facts, session.device, evaluation)
        tabs.append(
            {"id": "times", "title": "Times", "body_html": timing_view.render(evaluation.timing, roof)}
        )
    if evaluation.profile:
        origin = parent_round(session, item)
        before = origin.evaluation.profile if origin and origin.evaluation else None
        names = (revision(origin) if origin else "parent", revision(item))
        body = counts_view.render(evaluation.profile, parent=before, names=names)
        body += counts_view.compiled(evaluation.profile)
        tabs.append({"id": "counts", "title": "Counts", "body_html": body})
    found = None
    if evaluation.passed and (evaluation.profile or evaluation.timing):
        found = diagnose(session.facts, evaluation, session.device)
        tabs.append({"id": "diagnosis", "title": "Diagnosis", "body_html": rounds.diagnosis(found)})
    if evaluation.profile:
        lines = line_view.render(evaluation.profile, candidate.source, diagnosis=found)
        tabs.append({"id": "lines", "title": "Lines", "body_html": lines})
    if evaluation.layouts:
        origin = parent_round(session, item)
        body = layout_view.render(
            evaluation,
            parent=origin.evaluation if origin else None,
            names=(revision(origin) if origin else "parent", revision(item)),
            drawn=True,
        )
        tabs.append({"id": "layouts", "title": "Layouts", "body_html": body})
    return tabs


def _exchange(attempt: Attempt) -> dict[str, object]:
    """One exchange with the author: what was asked, what came back, what became of it."""
    evaluation, reply = attempt.evaluation, attempt.reply
    label = evaluation.label if evaluation else ("no usable reply" if attempt.problem else "words only")
    prompt = f"{attempt.prompt.system}\n\n{attempt.prompt.user}".strip()
    source = attempt.candidate.source if attempt.candidate else ""
    told = usage_words(reply.usage) if reply else ""
    return {
        "purpose": visible(attempt.purpose),
        "label": label,
        "good": bool(evaluation and evaluation.passed),
        "words": visible(attempt.problem or (evaluation.summary if evaluation else "")),
        "cost": visible("; ".join((f"{told}, {duration(reply.usage.seconds)}", *reply.notes)))
        if reply and told
        else "",
        "prompt": _cut(prompt),
        "reply": _cut(reply.text if reply else source if attempt.purpose == "edit" else ""),
        "findings_html": correctness_view.findings(evaluation.findings, source)
        if evaluation and evaluation.findings and not evaluation.passed
        else "",
    }


def _cut(text: str) -> str:
    cut = len(text) - _LONGEST
    return visible(text if cut <= 0 else f"{text[:_LONGEST]}\n… {cut:,} more characters are in the store")


def _spent(item: Round) -> str:
    made = decision(item)
    said = f"“{made.reason}”" if made and made.reason else ""
    done = f"{deed(made).capitalize()} by {who(made.by)}" if made else _UNDECIDED[item.candidate is None]
    return visible(
        " ".join(
            part
            for part in (
                f"{done}{':' if said else '.'}",
                said,
                f"Started {moment(item.started_at)}, took {duration(item.seconds)}.",
                item.note if item.candidate else "",  # told above where it says why there is none
            )
            if part
        )
    )
