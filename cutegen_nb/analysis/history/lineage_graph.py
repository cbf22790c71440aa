"""Lineage graph of a session's revisions: parents, authors and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.history.summary import decision, decision_word, revision
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.round import Attempt, Round
from cutegen_nb.core.search.comparison import Relation, same_kernel
from cutegen_nb.core.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """Node of the graph: the final candidate of a round, or one that a person edited in that round."""

    label: str
    """Label ``r3``; ``r3.1`` for the first candidate of r3 that a person then edited."""
    number: int
    """Number of its round."""
    digest: str
    """SHA-256 of the source."""
    parents: tuple[str, ...]
    """Labels of the revisions it was made from: none for a first one, several for a merge."""
    author: str
    """Author; ``person:NAME`` for an edit."""
    strategy: str
    """Name of the strategy that the author was asked to carry out; empty for a first kernel."""
    stage: str
    """Stage that the round ran in."""
    verdict: str
    """Name of the verdict, or the reason why there is none."""
    passed: bool
    """True if the verdict is PASSED."""
    relation: str
    """Relation to the best before it; empty where nothing passed."""
    decision: str
    """Decision at the gate: ``approved``, ``rejected`` …; ``edited`` for a candidate that a person edited."""
    approved: bool
    """True if later rounds may build on it."""
    best: bool
    """True if it is the session's best."""
    same_as: str = ""
    """Earlier revision with the same source: ``r2``; empty for a new kernel."""

    @property
    def relation_words(self) -> str:
        """Relation as a person reads it; empty where nothing passed."""
        if self.same_as:
            return same_kernel(self.same_as)
        return Relation(self.relation).words if self.relation else ""

    @property
    def by_person(self) -> bool:
        """True if a person wrote it."""
        return self.author.partition(":")[0] == "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """All revisions of a session, each after its parents."""

    revisions: tuple[Revision, ...]
    """Revisions in the order in which they were made."""
    without: tuple[str, ...]
    """Labels of rounds that ended without a candidate."""

    def children(self) -> dict[str, tuple[Revision, ...]]:
        """Return the revisions by the label of their first parent; ``""`` for revisions made from nothing."""
        found: dict[str, tuple[Revision, ...]] = {}
        for one in self.revisions:
            first = one.parents[0] if one.parents else ""
            found[first] = (*found.get(first, ()), one)
        return found

    def heirs(self) -> dict[str, str]:
        """Return the child that continues the line of descent of each label, and of ``""``.

        That is the child that leads to the best, else the one with most descendants; the last of equals.
        """
        children, weight = self.children(), dict[str, int]()
        for one in reversed(self.revisions):
            # The best outweighs all other revisions together.
            heavy = len(self.revisions) + 1 if one.best else 1
            weight[one.label] = heavy + sum(weight[child.label] for child in children.get(one.label, ()))
        return {
            label: max(reversed(some), key=lambda child: weight[child.label]).label
            for label, some in children.items()
        }


def lineage(session: Session) -> Lineage:
    """Build the lineage of a session.

    Repairs within a round are left out: the round's last candidate counts.
    """
    revisions: list[Revision] = []
    origin: dict[str, tuple[str, ...]] = {}
    newest: dict[str, str] = {}
    best = session.best
    for item in session.rounds:
        for attempt in item.attempts:
            if attempt.candidate and attempt.candidate.digest not in newest:
                origin.setdefault(attempt.candidate.digest, attempt.candidate.parents)
        for label, attempt, candidate in _shown(item):
            parents = _parents(candidate, origin, newest)
            revisions.append(_revision(item, label, attempt, candidate, parents, best=item is best))
            newest[candidate.digest] = label
    without = tuple(revision(item) for item in session.rounds if item.candidate is None)
    return Lineage(revisions=tuple(revisions), without=without)


def _shown(item: Round) -> Iterator[tuple[str, Attempt, Candidate]]:
    """Iterate over a round's revisions: candidates that a person then edited, and the final candidate."""
    made = [(attempt, attempt.candidate) for attempt in item.attempts if attempt.candidate]
    edited = 0
    for index, (attempt, candidate) in enumerate(made):
        if index + 1 == len(made):
            yield revision(item), attempt, candidate
        elif made[index + 1][0].purpose in {"edit", "restore"} and candidate.digest != made[-1][1].digest:
            edited += 1
            yield f"{revision(item)}.{edited}", attempt, candidate


def _parents(
    candidate: Candidate, origin: dict[str, tuple[str, ...]], newest: dict[str, str]
) -> tuple[str, ...]:
    """Return the labels of the nearest ancestors that are revisions, skipping candidates between."""
    found: list[str] = []
    seen = {candidate.digest}
    waiting = list(candidate.parents)
    while waiting:
        digest = waiting.pop(0)
        if digest in newest:
            found.append(newest[digest])
        elif digest not in seen:
            waiting = [*origin.get(digest, ()), *waiting]
        seen.add(digest)
    return tuple(dict.fromkeys(found))


def _revision(  # noqa: PLR0913 - a revision is all of these
    item: Round, label: str, attempt: Attempt, candidate: Candidate, parents: tuple[str, ...], *, best: bool
) -> Revision:
    final = label == revision(item)
    evaluation = attempt.evaluation
    strategy = candidate.strategy or (item.strategy if final else None)
    return Revision(
        label=label,
        number=item.number,
        digest=candidate.digest,
        parents=parents,
        author=candidate.author,
        strategy=strategy.name if strategy else "",
        stage=item.stage.value,
        verdict=evaluation.label if evaluation else "not evaluated",
        passed=bool(evaluation and evaluation.passed),
        relation=item.comparison.relation.value if final and item.comparison else "",
        decision=decision_word(decision(item)) if final else "edited",
        approved=final and item.approved,
        best=best and final,
        same_as=item.comparison.same_as if final and item.comparison else "",
    )


def tree(graph: Lineage) -> tuple[tuple[str, Revision], ...]:
    """Return each revision with the prefix that draws its branch; a line of descent goes straight down.

    Iterative, since a session may have a thousand rounds in one line.
    """
    children, heirs = graph.children(), graph.heirs()
    drawn: list[tuple[str, Revision]] = []
    by_label = {one.label: one for one in graph.revisions}
    waiting: list[tuple[str, str, str]] = [("", heirs.get("", ""), "heir")] if graph.revisions else []
    waiting += [("├─", one.label, "aside") for one in reversed(_asides("", children, heirs))]
    while waiting:
        prefix, label, kind = waiting.pop()
        drawn.append((prefix, by_label[label]))
        inner = prefix if kind == "heir" else f"{prefix[:-2]}│ "
        last = kind == "aside" and label not in heirs
        if last:
            continue
        if label in heirs:
            waiting.append((inner, heirs[label], "heir"))
        waiting += [(f"{inner}├─", one.label, "aside") for one in reversed(_asides(label, children, heirs))]
    return tuple(drawn)


def _asides(
    label: str, children: dict[str, tuple[Revision, ...]], heirs: dict[str, str]
) -> Sequence[Revision]:
    return [one for one in children.get(label, ()) if one.label != heirs.get(label)]
