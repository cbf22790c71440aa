"""The lineage of a session as a tree for a terminal."""

from __future__ import annotations

from cutegen_nb.analysis.lineage_graph import Lineage, Revision, lineage, tree
from cutegen_nb.analysis.summary import outcome, who
from cutegen_nb.core.session import Session
from cutegen_nb.report.fitting import paragraph, table_lines
from cutegen_nb.report.markup import visible
from cutegen_nb.report.text import cut


def lineage_text(session: Session) -> str:
    """A line a revision: what it was made from, and what became of it."""
    graph = lineage(session)
    drawn = [(f"{lines}{mark(one)} {one.label}", one) for lines, one in tree(graph)]
    heading = ("revision", "from", "strategy", "verdict", "against best", "author", "stage", "decision")
    body = [
        (
            name,
            " + ".join(one.parents) or "–",
            cut(one.strategy) or "–",
            one.verdict,
            one.relation or "–",
            cut(who(one.author)),
            one.stage,
            one.decision or "–",
        )
        for name, one in drawn
    ]
    key = "★ best   ● approved   ○ passed   × did not pass"
    tail = [line for part in (missing(graph), key, outcome(session)) if part for line in paragraph(part)]
    shown = table_lines([heading, *body]) if body else []
    return visible("\n".join([*shown, "", *tail]).lstrip("\n"))


def mark(one: Revision) -> str:
    """One character that says what became of a revision."""
    if one.best:
        return "★"
    if one.approved:
        return "●"
    return "○" if one.passed else "×"


def missing(graph: Lineage) -> str:
    """Which rounds gave no candidate, in a sentence; empty for none."""
    if not graph.without:
        return ""
    return f"No candidate came of {', '.join(graph.without)}."
