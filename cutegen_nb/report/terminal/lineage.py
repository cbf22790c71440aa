"""Text tree of a session's lineage for a terminal."""

from __future__ import annotations

from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.history.lineage_graph import Lineage, Revision, lineage, tree
from cutegen_nb.analysis.history.summary import outcome, who
from cutegen_nb.core.session import Session
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.fitting import paragraph, table_lines
from cutegen_nb.report.terminal.session import cut


def lineage_text(session: Session) -> str:
    """Format one line a revision: its parents, its verdict and the decision."""
    graph = lineage(session)
    drawn = [(f"{lines}{mark(one)} {one.label}", one) for lines, one in tree(graph)]
    heading = ("revision", "from", "strategy", "verdict", "against best", "author", "stage", "decision")
    body = [
        (
            name,
            " + ".join(one.parents) or "–",
            cut(one.strategy) or "–",
            one.verdict,
            one.relation_words or "–",
            cut(who(one.author)),
            one.stage,
            one.decision or "–",
        )
        for name, one in drawn
    ]
    key = "★ best   ● approved   ○ passed   × did not pass"
    ended = f"Ended: {ended_words(session.stopped)}" if session.stopped else ""
    tail = [
        line for part in (missing(graph), key, outcome(session), ended) if part for line in paragraph(part)
    ]
    shown = table_lines([heading, *body]) if body else []
    return visible("\n".join([*shown, "", *tail]).lstrip("\n"))


def mark(one: Revision) -> str:
    """Return the sign of a revision's result: best, approved, passed or not passed."""
    if one.best:
        return "★"
    if one.approved:
        return "●"
    return "○" if one.passed else "×"


def missing(graph: Lineage) -> str:
    """Name the rounds that gave no candidate, in a sentence; empty for none."""
    if not graph.without:
        return ""
    return f"No candidate came of {', '.join(graph.without)}."
