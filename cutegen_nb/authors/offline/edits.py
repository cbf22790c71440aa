"""Edits by a person on kernels of the offline author, carried on to its next kernel."""

from __future__ import annotations

import ast

from cutegen_nb.analysis.source.diff import split_lines
from cutegen_nb.analysis.source.merge import merge_texts
from cutegen_nb.authors.offline.lineage import PERSON, ancestors
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.session import Session


def with_edits(before: str, after: str, edited: str) -> tuple[str, str]:
    """Apply the edits that lead from `before` to `edited` to `after` as well.

    Returns the text and an empty string, or an empty text and the lines of `before` that both change.
    """
    before, after = _with_constants(before, after, edited)
    # The title names the strategies, so it always changes: an edit beside it would seem to conflict.
    title, new_title = _title(before), _title(after)
    shared = after.replace(new_title, title, 1) if title and new_title else after
    merged, conflicts = merge_texts(before, shared, edited)
    if conflicts:
        return "", conflicts[0].place
    return (merged.replace(title, new_title, 1) if title and new_title else merged), ""


def _with_constants(before: str, after: str, edited: str) -> tuple[str, str]:
    """Give both texts the edited constants, but for those that `after` changes or leaves out.

    A merge by lines has a conflict wherever a strategy adds a constant beside an edited one.
    """
    old, new, own = (_constants(text) for text in (before, after, edited))
    texts = [split_lines(before), split_lines(after)]
    for name, (number, line) in old.items():
        changed = own.get(name, (0, line))[1]
        if changed != line and name in new and new[name][1] == line:
            texts[0][number] = changed
            texts[1][new[name][0]] = changed
    return "".join(texts[0]), "".join(texts[1])


def _constants(source: str) -> dict[str, tuple[int, str]]:
    """Index and text of each line that assigns to one name at module level, by that name."""
    lines = split_lines(source)
    return {
        node.targets[0].id: (node.lineno - 1, lines[node.lineno - 1])
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and node.lineno == node.end_lineno
    }


def _title(source: str) -> str:
    return ast.get_docstring(ast.parse(source), clean=False) or ""


def is_edited(parent: Candidate, session: Session) -> bool:
    """Return whether a person had a part in `parent`."""
    return any(item.author.startswith(PERSON) for item in ancestors(parent, session))


def check_own(parent: Candidate, session: Session, name: str) -> None:
    """Raise Declined if another author than `name` and the person had a part in `parent`."""
    authors = [item.author for item in ancestors(parent, session)]
    foreign = next((one for one in authors if one != name and not one.startswith(PERSON)), "")
    if foreign or name not in authors:
        raise Declined(
            "the offline author goes on from kernels of its own and from a person's edits of them; "
            f"this is by {foreign or parent.author}"
        )
