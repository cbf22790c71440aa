"""Detail view of one round, or of the prompt for the next one, for the panel."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis, diagnose
from cutegen_nb.analysis.figures.quantity import duration, moment
from cutegen_nb.analysis.figures.spending import usage_words
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.history.fewest_flops import fewest_flops
from cutegen_nb.analysis.history.summary import (
    decision,
    decision_word,
    estimated_time,
    revision,
    rows,
    who,
)
from cutegen_nb.analysis.source.diff import changed_ranges
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Attempt, Prompt, Round, opening
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.lineage import parent_of_next
from cutegen_nb.notebook.review.base import (
    WHOLE,
    Look,
    at_version,
    base_of,
    base_view,
    current_version,
    versions_of,
)
from cutegen_nb.notebook.review.code_view import code_view
from cutegen_nb.notebook.review.failed_lines import failed_lines
from cutegen_nb.notebook.review.glance import glance
from cutegen_nb.notebook.review.ledger_view import claims_view
from cutegen_nb.notebook.safe_markdown import markdown_html
from cutegen_nb.report.html import correctness, counts, diagnosis, layouts, timing
from cutegen_nb.report.html import lines as line_view
from cutegen_nb.report.markup import headline, visible

_LONGEST = 200_000
"""Characters of one text at most, so that the page stays fast; the store holds all of it."""

_UNDECIDED = ("No decision was asked for", "It ended before there was anything to decide on")
"""Note for a round without a decision: with a candidate, and without one."""
_WIDEST = 0xFFFF
"""Greatest code point that is one unit in UTF-16."""
_VERSION = {
    "generate": "first kernel",
    "optimise": "kernel",
    "reply": "kernel",
    "diagnose": "repair",
    "edit": "edit",
    "restore": "kernel",
}
"""Name of a version of a round's kernel, by the purpose of its attempt."""
_TITLE = 80
"""Characters of a strategy's name in a heading at most."""


def plain(text: str) -> str:
    """Escape unpaired surrogates, which UTF-8 cannot encode; other text is unchanged."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def named(strategy: str) -> str:
    """Return a strategy's name for a heading, cut to `_TITLE` characters."""
    shown = visible(strategy).strip()
    return shown if len(shown) <= _TITLE else f"{shown[:_TITLE].rstrip()} …"


def prompt_detail(
    session: Session, prompt: Prompt, key: str, *, editable: bool, sent: bool = False
) -> dict[str, object]:
    """Return the view of a prompt: `editable` while it waits for approval, `sent` while it is answered.

    Else it waits for a reply that a person brings.
    """
    number = len(session.rounds)
    parent = _parent(session, prompt.parent.digest) if prompt.parent else None
    return {
        "kind": "prompt",
        "key": key,
        "round": number,
        "title": f"Request for r{number}",
        "author": visible(session.author),
        "from": revision(parent) if parent else "",
        "strategy": _strategy(prompt.strategy),
        "system": visible(prompt.system),
        "user": plain(prompt.user),
        "editable": editable,
        "sent": sent,
        **_last_request(session),
    }


def _parent(session: Session, digest: str) -> Round | None:
    """Return the round that a request starts from. A later round may have the same kernel."""
    chosen = parent_of_next(session)
    if chosen is not None and chosen.candidate is not None and chosen.candidate.digest == digest:
        return chosen
    return session.round_of(digest)


def _last_request(session: Session) -> dict[str, str]:
    """Return the request of the last round with its name, to tell what is new in the next one."""
    asked = next((item for item in reversed(session.rounds) if item.attempts), None)
    if asked is None:
        return {"before": "", "before_name": ""}
    return {"before": plain(opening(asked.attempts).prompt.user), "before_name": revision(asked)}


def round_detail(
    session: Session, item: Round, key: str, *, editable: bool, look: Look = WHOLE
) -> dict[str, object]:
    """Return the view of one round; `editable` while the round waits for a decision."""
    version = look.version
    made, current, is_pending = versions_of(item), current_version(item), editable
    looked_at = version if version in made else current
    versions = [_version(item, index, shown=index == looked_at) for index in made]
    is_old = looked_at != current
    base, base_name = base_of(session, item, version, look.pinned)
    compared = base_view(session, item, version, look.pinned)
    if is_old:
        item = at_version(item, version)
        session = replace(
            session, rounds=(*session.rounds[: item.number], item, *session.rounds[item.number + 1 :])
        )
        key, editable = f"{key} version {version}", False
    candidate, evaluation = item.candidate, item.evaluation
    row = rows(session)[item.number]
    relation = "" if row.relation == Relation.FIRST.value else row.relation_words
    old = base.candidate if base else None
    found = _diagnosed(session, evaluation)
    return {
        "kind": "round",
        "key": key,
        "round": item.number,
        "title": f"{row.revision} · {named(row.strategy) or 'first kernel'}",
        "verdict": row.verdict_words,
        "good": row.passed,
        "reason": visible(
            with_note(told_once(relation, headline(row.reason)) if relation else headline(row.reason), item)
        ),
        "best": row.best,
        "strategy": _strategy_unless_repeated(item.strategy, candidate),
        "rationale_html": markdown_html(candidate.rationale.strip()) if candidate else "",
        "rationale_by": visible(_author(candidate)) if candidate else "",
        "old": plain(old.source) if old else "",
        "old_name": base_name,
        "base": compared,
        "claims": claims_view(session, item),
        "glance": glance(session, item, base, base_name, found),
        "new": plain(candidate.source) if candidate else "",
        "new_name": row.revision,
        "has_source": candidate is not None,
        "editable": editable and candidate is not None,
        "versions": versions if len(versions) > 1 else [],
        "is_old": is_old,
        "changes": _changes(old, candidate),
        "failed_lines": failed_lines(evaluation, candidate.source) if candidate else [],
        "has_code": bool(evaluation and evaluation.code),
        "tabs": _tabs(session, item, base, base_name, found),
        "exchanges": [_exchange(attempt) for attempt in item.attempts],
        "spent": "" if is_pending else _spent(item),
    }


def round_code(session: Session, item: Round, key: str, version: int | None) -> dict[str, object]:
    """Return the compiled code of a round's kernels beside its source; `key` is that of its detail."""
    item = at_version(item, version)
    if item.candidate is None or item.evaluation is None:
        return {}
    found = _diagnosed(session, item.evaluation)
    return code_view(key, item.candidate.source, item.evaluation, found)


def with_note(reason: str, item: Round) -> str:
    """Add the note on a repair that brought no kernel to the words on the kernel that there is."""
    if not item.note or item.evaluation is None or item.candidate is None:
        return reason
    ended = "" if reason.endswith((".", "!", "?", "…")) else "."
    note = f"{item.note[:1].upper()}{item.note[1:]}".rstrip(".")
    return f"{reason}{ended} {note}."


def told_once(relation: str, reason: str) -> str:
    """Join a relation and the figures behind it to a sentence that says "estimated" once."""
    is_repeated = relation.startswith("estimated ") and reason.startswith("estimated ")
    figures = reason.removeprefix("estimated ") if is_repeated else reason
    return f"{relation[:1].upper()}{relation[1:]}: {figures}"


def _version(item: Round, index: int, *, shown: bool) -> dict[str, object]:
    """Return one version of a round's kernel as an entry of a selection."""
    attempt, evaluation = item.attempts[index], at_version(item, index).evaluation
    candidate = attempt.candidate
    assert candidate is not None
    return {
        "attempt": index,
        "label": visible(f"{_VERSION.get(attempt.purpose, attempt.purpose)} by {_author(candidate)}"),
        "verdict": evaluation.verdict_words if evaluation else "not evaluated",
        "good": bool(evaluation and evaluation.passed),
        "shown": shown,
        "current": index == current_version(item),
    }


def _changes(parent: Candidate | None, candidate: Candidate | None) -> list[tuple[int, int, int, int]]:
    """Return what differs from the parent, in the offsets of a script: UTF-16, with line ends of one unit."""
    if parent is None or candidate is None:
        return []
    old, new = (plain(one.source).replace("\r\n", "\n").replace("\r", "\n") for one in (parent, candidate))
    at_old, at_new = _script_offsets(old), _script_offsets(new)
    return [(at_old(a), at_old(b), at_new(c), at_new(d)) for a, b, c, d in changed_ranges(old, new)]


def _script_offsets(text: str) -> Callable[[int], int]:
    """Return a function from an index in `text` to that in JavaScript, where some characters count twice."""
    wide = [index for index, mark in enumerate(text) if ord(mark) > _WIDEST]
    return lambda index: index + bisect_left(wide, index)


def _author(candidate: Candidate) -> str:
    """Return the author of a candidate: the login of a person, or the name of an author."""
    return who(candidate.author) if candidate.author.startswith("person:") else candidate.author


def _strategy_unless_repeated(
    strategy: Strategy | None, candidate: Candidate | None
) -> dict[str, str] | None:
    """Return the strategy; None if the candidate's rationale repeats its statement."""
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


def _diagnosed(session: Session, evaluation: Evaluation | None) -> Diagnosis | None:
    """Return the diagnosis of a kernel that passed; None where nothing was counted or timed."""
    if evaluation is None or not evaluation.passed or not (evaluation.profile or evaluation.timing):
        return None
    return diagnose(session.facts, evaluation, session.device, fewest_flops(session))


def _tabs(
    session: Session, item: Round, base: Round | None, base_name: str, found: Diagnosis | None
) -> list[dict[str, str]]:
    candidate, evaluation = item.candidate, item.evaluation
    if candidate is None or evaluation is None:
        return []
    before = base.evaluation if base else None
    names = (base_name or "parent", revision(item))
    pages = [("correctness", "Correctness", correctness.render(evaluation, candidate.source, linked=True))]
    if evaluation.timing:
        roof = place(session.facts, session.device, evaluation)
        pages.append(("times", "Times", timing.render(evaluation.timing, roof)))
    if evaluation.profile:
        body = counts.render(evaluation.profile, parent=before.profile if before else None, names=names)
        pages.append(("counts", "Counts", body + counts.compiled(evaluation.profile)))
    if found:
        pages.append(("diagnosis", "Diagnosis", diagnosis.render(found, estimated_time(session, item))))
    if evaluation.profile:
        lines = line_view.render(evaluation.profile, candidate.source, diagnosis=found)
        pages.append(("lines", "Lines", lines))
    if evaluation.layouts:
        body = layouts.render(evaluation, parent=before, names=names, drawn=True)
        pages.append(("layouts", "Layouts", body))
    return [{"id": name, "title": title, "body_html": body} for name, title, body in pages]


def _exchange(attempt: Attempt) -> dict[str, object]:
    """Return one exchange with the author: prompt, reply, evaluation and cost."""
    evaluation, reply = attempt.evaluation, attempt.reply
    label = evaluation.label if evaluation else ("no usable reply" if attempt.problem else "words only")
    label = attempt.ended.end.value if attempt.ended else label
    prompt = f"{attempt.prompt.system}\n\n{attempt.prompt.user}".strip()
    source = attempt.candidate.source if attempt.candidate else ""
    told = usage_words(reply.usage) if reply else ""
    return {
        "purpose": visible(attempt.purpose),
        "label": label,
        "good": bool(evaluation and evaluation.passed),
        "words": visible(headline(attempt.problem or (evaluation.summary if evaluation else ""))),
        "cost": visible("; ".join((f"{told}, {duration(reply.usage.seconds)}", *reply.notes)))
        if reply and told
        else "",
        "prompt": _cut(prompt),
        "reply": _cut(reply.text if reply else source if attempt.purpose == "edit" else ""),
        "findings_html": correctness.findings(evaluation.findings, source, told=evaluation.summary)
        if evaluation and evaluation.findings and not evaluation.passed
        else "",
    }


def _cut(text: str) -> str:
    cut = len(text) - _LONGEST
    return visible(text if cut <= 0 else f"{text[:_LONGEST]}\n… {cut:,} more characters are in the store")


def _spent(item: Round) -> str:
    made = decision(item)
    said = f"“{made.reason}”" if made and made.reason else ""
    done = (
        f"{decision_word(made).capitalize()} by {who(made.by)}"
        if made
        else _UNDECIDED[item.candidate is None]
    )
    return visible(
        " ".join(
            part
            for part in (
                f"{done}{':' if said else '.'}",
                said,
                f"Started {moment(item.started_at)}, took {duration(item.seconds)}.",
            )
            if part
        )
    )
