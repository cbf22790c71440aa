"""Syntax highlighting of Python source by line, with marks for changed spans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from markupsafe import Markup
from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
from pygments.token import (  # type: ignore[import-untyped]
    Comment,
    Keyword,
    Literal,
    Name,
    Number,
    Operator,
    String,
    Token,
    _TokenType,
)

from cutegen_nb.analysis.source.diff import Span
from cutegen_nb.report.markup import Style, fill

Piece = tuple[str, str]
"""Kind and text of a piece. Kinds: ``k`` keyword, ``s`` string, ``c`` comment, ``m`` number, ``f`` defined
name, ``d`` decorator, ``b`` builtin, empty for other text."""

_KINDS: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (String.Doc, "c"),
    (Literal.String, "s"),
    (Number, "m"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Decorator, "d"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Builtin, "b"),
)
"""Token types of Pygments to kinds; the first match is taken."""


@lru_cache(maxsize=64)
def highlight(source: str) -> tuple[tuple[Piece, ...], ...]:
    r"""Return every line of a source as pieces, cut at ``\n`` only.

    Joined with line ends they are the source.
    """
    lines: list[list[Piece]] = [[]]
    # get_tokens would normalise line ends and strip; the unprocessed variant keeps every character.
    for _, token, text in PythonLexer().get_tokens_unprocessed(source):
        kind = _kind(token)
        first, *rest = text.split("\n")
        _append(lines[-1], kind, first)
        for part in rest:
            lines.append([])
            _append(lines[-1], kind, part)
    if source.endswith("\n"):
        lines.pop()
    return tuple(tuple(line) for line in lines)


def pieces(line: Sequence[Piece], changed: Sequence[Span] = ()) -> list[tuple[str, str, bool]]:
    """Return a line's pieces, cut where a changed span begins or ends; True for those inside one."""
    edges = sorted({edge for span in changed for edge in span})
    position = 0
    found = []
    for kind, text in line:
        stop = position + len(text)
        cuts = [position, *(edge for edge in edges if position < edge < stop), stop]
        for start, end in pairwise(cuts):
            inside = any(low <= start and end <= high for low, high in changed)
            found.append((kind, text[start - position : end - position], inside))
        position = stop
    return found


def listing(
    source: str, style: Style, *, first: int = 1, last: int | None = None, pointed: int = 0
) -> Markup:
    """Return the numbered lines `first` to `last` of a source, all by default; line `pointed` is marked."""
    lines = highlight(source)[:last]
    shown = [(number, pieces(line)) for number, line in enumerate(lines, start=1) if number >= first]
    return fill("listing", style, lines=shown, pointed=pointed)


def excerpt(source: str, line: int, style: Style, around: int = 2) -> Markup:
    """Return the lines around `line`; empty if the source has no such line."""
    if not 1 <= line <= len(highlight(source)):
        return Markup()
    return listing(source, style, first=line - around, last=line + around, pointed=line)


def _kind(token: _TokenType) -> str:
    if token in Token.Error:
        return ""
    return next((kind for parent, kind in _KINDS if token in parent), "")


def _append(line: list[Piece], kind: str, text: str) -> None:
    if not text:
        return
    if line and line[-1][0] == kind:
        line[-1] = (kind, line[-1][1] + text)
    else:
        line.append((kind, text))
