"""Python source as highlighted lines, cut so that marks inside a line can be added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

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

from cutegen_nb.analysis.diff import Span
from cutegen_nb.report.markup import Style, look, safe

Piece = tuple[str, str]
"""Kind (``k`` keyword, ``s`` string, ``c`` comment, ``m`` number, ``f`` defined name, ``d`` decorator,
``b`` builtin, empty for other text) and the text."""

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


@lru_cache(maxsize=64)
def highlight(source: str) -> tuple[tuple[Piece, ...], ...]:
    r"""Every line of a source, cut at ``\n`` only, as pieces; joined they are the source again."""
    lines: list[list[Piece]] = [[]]
    # get_tokens would normalise line ends and strip; unprocessed keeps every character.
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


def line_html(pieces: Sequence[Piece], style: Style, changed: Sequence[Span] = (), mark: str = "") -> str:
    """One line; the `changed` characters are dressed as `mark` (``mark-added``, ``mark-removed``)."""
    out = []
    for kind, text, is_changed in _cut(pieces, changed):
        dressed = f"<span{look(style, kind)}>{safe(text)}</span>" if kind else safe(text)
        out.append(f"<span{look(style, mark)}>{dressed}</span>" if is_changed and mark else dressed)
    return "".join(out)


def listing(source: str, style: Style, *, first: int = 1, last: int | None = None, pointed: int = 0) -> str:
    """Numbered lines `first` to `last` of a source, all by default; `pointed` is set off."""
    lines = highlight(source)
    stop = len(lines) if last is None else min(last, len(lines))
    rows = []
    for number in range(max(1, first), stop + 1):
        is_pointed = number == pointed
        sign = "▸" if is_pointed else ""
        rows.append(
            f"<tr{look(style, 'row-pointed' if is_pointed else 'row')}>"
            f"<td{look(style, 'number')}>{number}</td><td{look(style, 'sign')}>{sign}</td>"
            f"<td{look(style, 'code')}>{line_html(lines[number - 1], style)}</td></tr>"
        )
    return f"<table{look(style, 'listing')}><tbody>{''.join(rows)}</tbody></table>"


def excerpt(source: str, line: int, style: Style, around: int = 2) -> str:
    """The lines around `line`; empty when the source has no such line."""
    if not 1 <= line <= len(highlight(source)):
        return ""
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


def _cut(pieces: Sequence[Piece], changed: Sequence[Span]) -> Iterator[tuple[str, str, bool]]:
    """Pieces cut where a changed span begins or ends."""
    edges = sorted({edge for span in changed for edge in span})
    position = 0
    for kind, text in pieces:
        stop = position + len(text)
        cuts = [position, *(edge for edge in edges if position < edge < stop), stop]
        for start, end in pairwise(cuts):
            inside = any(low <= start and end <= high for low, high in changed)
            yield kind, text[start - position : end - position], inside
        position = stop
