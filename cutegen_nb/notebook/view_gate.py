"""View of what a person is asked for: a decision at a gate, or a reply to carry back."""

from __future__ import annotations

import re
from pathlib import Path

from cutegen_nb.analysis.history.summary import RoundSummary, rows
from cutegen_nb.analysis.source.merge import mergeable
from cutegen_nb.authors.manual import wanted
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.carrying import request_id, request_text, short_path
from cutegen_nb.notebook.view_detail import named, told_once, with_note
from cutegen_nb.report.markup import headline, visible

_VERDICT = re.compile(r"^# What happened\n+(?P<line>.+)$", re.MULTILINE)
"""Heading of the shipped template with the verdict below it."""


def carry_view(
    session: Session, prompt: Prompt | None, files: tuple[Path, Path] | None = None
) -> dict[str, object] | None:
    """Return the request that a person is to carry to a model; None while there is none.

    `files` are those of the request and of its reply.
    """
    if prompt is None:
        return None
    number = len(session.rounds)
    return {
        "id": request_id(prompt, number),
        "round": number,
        "title": f"r{number} wants {visible(wanted(prompt))}",
        "size": len(request_text(prompt)),
        "can_skip": prompt.purpose == "repair",
        "happened": visible(_happened(prompt)),
        "files": [{"shown": visible(short_path(path)), "whole": visible(str(path))} for path in files or ()],
    }


def _happened(prompt: Prompt) -> str:
    """Return the verdict that a request for a repair quotes; empty for any other request."""
    found = _VERDICT.search(prompt.user) if prompt.purpose == "repair" else None
    return found["line"] if found else ""


def gate_view(session: Session, whole: Session, gate: Gate | None) -> dict[str, object] | None:
    """Return the open decision with its possible answers; None while none is waited for.

    `whole` is the session with the round at the gate.
    """
    number = len(session.rounds)
    if gate and gate.prompt:
        strategy = gate.prompt.strategy
        return {
            "gate": "prompt",
            "id": gate.id,
            "round": number,
            "title": f"r{number}: {named(strategy.name) if strategy else 'a first kernel that is correct'}",
            "text": visible(strategy.statement) if strategy else "No strategy yet: first it has to be right.",
            "asks": gate.question,
            "is_kept": False,
            "can_approve": True,
            "why_not": "",
            "branches": [],
            "merges": [],
            "can_overrule": False,
            "may_predict": session.best is not None,
            "predicts": any(made.prediction for item in session.rounds for made in item.decisions),
        }
    if gate is None or len(whole.rounds) == number:
        return None
    row = rows(whole)[number]
    reason = row.reason if row.passed else f"{row.verdict}: {headline(row.reason)}"
    is_told = row.relation and row.relation != Relation.FIRST.value  # "first: The first passing revision"
    able = mergeable(whole)
    evaluation = whole.rounds[number].evaluation
    may_overrule = evaluation is not None and evaluation.may_be_overruled
    overrule = ", overrule it with a reason" if may_overrule else ""
    stands = evaluation is not None and evaluation.stands
    why = evaluation.shortfall if evaluation is not None else "it was not evaluated"
    has_passed = any(made.candidate and made.evaluation and made.evaluation.stands for made in gate.attempts)
    restore = ", restore the version that passed" if has_passed and not stands else ""
    why_not = f"r{number} cannot be approved: {why}. Reject it, edit it{restore}{overrule} or stop."
    return {
        "gate": "revision",
        "id": gate.id,
        "round": number,
        "title": f"r{number}: {named(row.strategy) or 'first kernel'}",
        "text": visible(
            with_note(told_once(row.relation_words, reason) if is_told else reason, whole.rounds[number])
            + _approving(session, gate.comparison)
        ),
        "asks": gate.question,
        "is_kept": stands and not gate.is_better,
        "can_approve": stands,
        "why_not": "" if stands else why_not,
        "branches": [_choice(item) for item in rows(session) if item.passed],
        "merges": [_choice(item) for item in rows(session) if _number(item) in able],
        "can_overrule": may_overrule,
    }


def _approving(session: Session, comparison: Comparison | None) -> str:
    """Return a note on what approving a revision that passed does; empty for one that did not pass."""
    if comparison is None:
        return ""
    if session.best is None:
        return " It counts once you approve it; after Stop it waits until you resume."
    if comparison.relation.is_better:
        return (
            " It counts once you approve it: Branch leaves it out, and after Stop it waits until you resume."
        )
    best = f"r{session.best.number}"
    return f" Approving keeps it, and the next round still starts from {best}."


def _number(item: RoundSummary) -> int:
    return int(item.revision.removeprefix("r"))


def _choice(item: RoundSummary) -> dict[str, object]:
    """Return a revision as an entry of a selection list."""
    name = named(item.strategy) or "first kernel"
    became = "best" if item.best else item.decision if item.passed else item.verdict
    return {
        "round": _number(item),
        "label": " · ".join(part for part in (item.revision, name, became) if part),
    }
