"""Merge of two revisions as the answer to a revision gate, for `%cutegen merge` and the panel."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.source.merge import MergeConflict, SeparateChanges, changes_apart, merge_revisions
from cutegen_nb.core.errors import CutegenError, UsageError
from cutegen_nb.core.round import Action
from cutegen_nb.notebook.approver import Answer, Gate
from cutegen_nb.report.html import diff
from cutegen_nb.report.markup import visible

PAIR = 2
"""Number of revisions that a merge takes."""


def merge_answer(gate: Gate | None, revisions: Sequence[str], name: str) -> Answer:
    """Return the EDIT answer that replaces the revision at the gate by the merge of two revisions.

    `revisions` are ``r3``, or ``r3:1,4`` for two hunks of r3. `name` is the session's, for the message.
    Raises UsageError where no revision gate is open, and for revisions that cannot be merged.
    """
    if gate is None or gate.kind != "revision":
        raise UsageError(
            "a merged kernel is judged in the place of a revision that waits for you, and none waits now; "
            f"`cutegen-nb merge {name} {' '.join(revisions)} -o FILE.py` writes it to a file"
        )
    first, second = _pair(revisions)
    merged = merge_revisions(gate.with_pending(gate.session), first, second)
    return Answer(
        action=Action.EDIT,
        reason=merged.words,
        edited=merged.source,
        parents=merged.parents,
        gate=gate.kind,
        number=gate.number,
    )


def _pair(revisions: Sequence[str]) -> tuple[str, str]:
    if len(revisions) != PAIR:
        raise UsageError(f"a merge takes two revisions, and {len(revisions)} were named: r3 r4:1,2")
    return revisions[0], revisions[1]


def merge_view(gate: Gate | None, revisions: Sequence[str], question: str) -> dict[str, object]:
    """Return the preview of a merge for the panel, without a decision.

    The preview holds the hunks of both revisions, the diff from the revision at the gate to the merged
    kernel, and a sentence on the result or the conflict. `question` is the `Gate.id` of the open question.
    """
    shown: dict[str, object] = {
        "question": question,
        "revisions": list(revisions),
        "origin": "",
        "sides": [],
        "able": False,
        "words": "",
        "places": "",
        "preview_html": "",
    }
    try:
        names = [word.partition(":")[0] for word in _pair(revisions)]
        if gate is None:
            raise UsageError("the revision no longer waits for a decision")
        apart = changes_apart(gate.with_pending(gate.session), *names)
        shown |= {"origin": apart.origin, "sides": [_side(apart, i) for i in range(PAIR)]}
        empty = next((name for name, word in zip(names, revisions, strict=True) if word.endswith(":")), "")
        if empty:
            raise UsageError(f"Choose at least one change of {empty}.")
        merged = merge_answer(gate, revisions, "").edited
    except MergeConflict as refusal:
        words = (
            f"{names[0]} and {names[1]} change the same lines differently. At each place below, leave out "
            "the change of one of them."
        )
        return {**shown, "words": words, "places": visible(refusal.places)}
    except CutegenError as refusal:
        return {**shown, "words": visible(str(refusal))}
    if merged.strip() == gate.text.strip():
        return {**shown, "words": f"The merge changes nothing: r{gate.number} has these changes already."}
    return {
        **shown,
        "able": True,
        "words": f"They fit. This is what would change in r{gate.number}; it is judged before it counts.",
        "preview_html": diff.render(
            gate.text, merged, old_name=f"r{gate.number}, which waits", new_name="merged"
        ),
    }


def _side(apart: SeparateChanges, index: int) -> dict[str, object]:
    """Return one revision with its hunks since the common ancestor."""
    found = diff.hunks(apart.ancestor.source, apart.sources[index])
    return {
        "revision": apart.labels[index],
        "hunks": [{"number": number, "title": title, "body_html": body} for number, title, body in found],
    }
