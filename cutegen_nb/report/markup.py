"""Text made safe for HTML, and the two ways to dress it.

PAGE uses the classes of the standalone page (``page.css``), which has light and dark
colours. RECORD uses inline styles with literal colours only and sets no text colour: this is what a
notebook's sanitiser leaves standing, readable on either background.
"""

from __future__ import annotations

import html
import unicodedata
from enum import StrEnum

_ADDED, _REMOVED = "#0072B2", "#D55E00"
"""Blue and vermillion of the Okabe–Ito palette: told apart by every kind of colour vision."""

_MONO = "font-family:monospace;font-size:13px;line-height:1.45"
_CELL = "padding:0 6px;text-align:left;vertical-align:top;border:0"
_NUMBER_CELL = f"{_CELL};text-align:right;opacity:0.65;width:3em;white-space:nowrap"

_INLINE: dict[str, str] = {
    "card": "border:1px solid rgba(128,128,128,0.4);border-radius:4px;margin:8px 0;overflow-x:auto",
    "muted": "opacity:0.75",
    "data": "border-collapse:collapse;margin:8px 0",
    "cell": "padding:2px 10px;text-align:left;vertical-align:top;border:0;white-space:normal;"
    "border-bottom:1px solid rgba(128,128,128,0.3)",
    "figure": "padding:2px 10px;text-align:right;vertical-align:top;border:0;white-space:nowrap;"
    "font-variant-numeric:tabular-nums;border-bottom:1px solid rgba(128,128,128,0.3)",
    "cell-head": "padding:2px 10px;text-align:left;vertical-align:bottom;border:0;white-space:normal;"
    "border-bottom:1px solid rgba(128,128,128,0.3)",
    "figure-head": "padding:2px 10px;text-align:right;vertical-align:bottom;border:0;white-space:normal;"
    "border-bottom:1px solid rgba(128,128,128,0.3)",
    "caption": "text-align:left;padding:4px 8px;font-weight:600;caption-side:top",
    "listing": f"{_MONO};border-collapse:collapse;width:100%;margin:0",
    "lines": f"{_MONO};border-collapse:collapse;width:100%;margin:0;table-layout:fixed;min-width:64em",
    "row": "background:transparent",
    "row-added": "background:rgba(0,114,178,0.14)",
    "row-removed": "background:rgba(213,94,0,0.14)",
    "row-pointed": "background:rgba(213,94,0,0.14)",
    "row-hot": "outline:2px solid rgba(213,94,0,0.9);outline-offset:-2px;font-weight:600",
    "number": _NUMBER_CELL,
    "sign": f"{_CELL};width:1em;font-weight:700",
    "code": f"{_CELL};white-space:pre-wrap;overflow-wrap:anywhere",
    "code-added": f"{_CELL};white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid {_ADDED}",
    "code-removed": f"{_CELL};white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid {_REMOVED}",
    "plain": "text-decoration:none;background:transparent",
    "mark-added": "background:rgba(0,114,178,0.38);font-weight:600",
    "mark-removed": "background:rgba(213,94,0,0.38);font-weight:600",
    "good": f"border-left:3px solid {_ADDED};padding:0 6px;font-weight:600;white-space:nowrap",
    "bad": f"border-left:3px solid {_REMOVED};padding:0 6px;font-weight:600;white-space:nowrap",
    "neutral": "border-left:3px solid rgba(128,128,128,0.6);padding:0 6px;font-weight:600;white-space:nowrap",
    "text": f"{_MONO};white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 8px",
    "summary": "cursor:pointer;padding:2px 8px",
    "wide": "overflow-x:auto",
    "quote": "white-space:pre-wrap;border-left:3px solid rgba(128,128,128,0.4);margin:6px 0;padding:0 10px",
    "inset": "border-left:3px solid rgba(128,128,128,0.4);margin:4px 0 8px 10px;padding:0 10px",
    "diff-head": "margin:0;padding:4px 8px",
    "name": "white-space:nowrap",
    "heat": "padding:0 4px;text-align:right;vertical-align:bottom;width:80px;border:0;font-weight:400;"
    "font-family:sans-serif;font-size:12px;line-height:1.3;white-space:normal",
    "unit": "display:block;font-size:11px;line-height:1.2;opacity:0.8",
    "k": "font-weight:700",
    "c": "font-style:italic;opacity:0.8",
}


class Style(StrEnum):
    """How the HTML is dressed."""

    PAGE = "page"
    RECORD = "record"


def look(style: Style, name: str) -> str:
    """The attribute, with a space before it, that dresses an element as `name`; empty where plain."""
    if style is Style.PAGE:
        return f' class="{name}"'
    inline = _INLINE.get(name, "")
    return f' style="{inline}"' if inline else ""


def visible(text: str) -> str:
    """Text with the characters that hide or reorder others written out as ``⟨U+202E⟩``.

    Control, format (bidirectional overrides, zero-width) and unpaired surrogate characters could show a
    kernel otherwise than a compiler reads it. Tabs and line ends stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"⟨U+{ord(mark):04X}⟩"
        if mark not in "\t\n" and unicodedata.category(mark) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        else mark
        for mark in text
    )


def safe(text: object) -> str:
    """Anything as text for an element or an attribute: made visible and escaped."""
    return html.escape(visible(str(text)), quote=True)


def badge(style: Style, kind: str, words: str) -> str:
    """A short status word; `kind` is ``good``, ``bad`` or ``neutral`` and never stands without the word."""
    css = f' class="badge {kind}"' if style is Style.PAGE else look(style, kind)
    return f"<span{css}>{safe(words)}</span>"


def folded(style: Style, title: str, body: str, *, is_open: bool = False) -> str:
    """A part that opens on demand; `body` is HTML, `title` text."""
    opened = " open" if is_open else ""
    css = look(style, "fold") if style is Style.PAGE else ""
    return f"<details{css}{opened}><summary{look(style, 'summary')}>{safe(title)}</summary>{body}</details>"


def gap(style: Style, title: str, body: str) -> str:
    """A stretch of a listing that is folded away; `body` is HTML, `title` text."""
    head = f"<summary{look(style, 'summary')}>{safe(title)}</summary>"
    return f"<details{look(style, 'gap')}>{head}{body}</details>"


def preformatted(style: Style, text: str) -> str:
    """Text whose spaces and lines count."""
    return f"<pre{look(style, 'text')}>{safe(text)}</pre>"


def table(
    style: Style, caption: str, columns: tuple[tuple[str, bool], ...], body: tuple[tuple[str, ...], ...]
) -> str:
    """A table of HTML cells; a column is its heading and whether it holds figures; first cells name rows."""

    def css(index: int, kind: str = "") -> str:
        return look(style, f"{'figure' if columns[index][1] else 'cell'}{kind}")

    # The page has rules for headings; elsewhere one may break, or it would be wider than its figures.
    kind = "" if style is Style.PAGE else "-head"
    head = "".join(
        f'<th scope="col"{css(i, kind)}>{safe(title)}</th>' for i, (title, _) in enumerate(columns)
    )
    lines = []
    for cells in body:
        first = f'<th scope="row"{css(0)}>{cells[0]}</th>'
        rest = "".join(f"<td{css(i)}>{cell}</td>" for i, cell in enumerate(cells[1:], start=1))
        lines.append(f"<tr{look(style, 'row')}>{first}{rest}</tr>")
    whole = (
        f"<table{look(style, 'data')}><caption{look(style, 'caption')}>{safe(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )
    return f"<div{look(style, 'wide')}>{whole}</div>"
