"""HTML templates, whose values are escaped, and the two styles of output: CSS classes or inline styles.

PAGE uses the classes of the standalone page (``page.css``), which has light and dark colours. RECORD uses
inline styles with literal colours only and sets no text colour. Notebook sanitisers keep such styles, and the
text is readable on light and dark.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import jinja2
from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import count, duration, error, moment, scaled, share, times
from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.history.ledger import without_quote
from cutegen_nb.analysis.history.summary import decision_word, who

_ADDED, _REMOVED = "#0072B2", "#D55E00"
"""Blue and vermilion of the Okabe–Ito palette, distinct for every kind of colour vision."""

_MONO = "font-family:monospace;font-size:13px;line-height:1.45"
_CELL = "padding:0 6px;text-align:left;vertical-align:top;border:0"
_NUMBER_CELL = f"{_CELL};text-align:right;opacity:0.65;width:3em;white-space:nowrap"

_INLINE: dict[str, str] = {
    "card": "border:1px solid rgba(128,128,128,0.4);border-radius:4px;margin:8px 0;overflow-x:auto",
    "muted": "opacity:0.75",
    "data": "border-collapse:collapse;margin:8px 0",
    "cell": "padding:2px 10px;text-align:left;vertical-align:top;border:0;white-space:normal;"
    "border-bottom:1px solid rgba(128,128,128,0.3)",
    "above": "padding:6px 10px 0;text-align:left;vertical-align:top;border:0;white-space:normal",
    "figure": "padding:2px 10px;text-align:right;vertical-align:top;border:0;white-space:nowrap;"
    "font-variant-numeric:tabular-nums;border-bottom:1px solid rgba(128,128,128,0.3)",
    "cell-head": "padding:2px 10px;text-align:left;vertical-align:bottom;border:0;white-space:normal;"
    "border-bottom:1px solid rgba(128,128,128,0.3)",
    "figure-head": "padding:2px 10px;text-align:right;vertical-align:bottom;border:0;white-space:normal;"
    "border-bottom:1px solid rgba(128,128,128,0.3)",
    "caption": "text-align:left;padding:4px 8px;font-weight:600;caption-side:top",
    "listing": f"{_MONO};border-collapse:collapse;width:100%;margin:0",
    "lines": f"{_MONO};border-collapse:collapse;width:100%;margin:0;table-layout:fixed",
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
    "text": f"{_MONO};white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;margin:6px 8px",
    "summary": "cursor:pointer;padding:2px 8px",
    "left-out": "margin:4px 8px;opacity:0.75",
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
"""Inline style of each element name, for RECORD."""


class Style(StrEnum):
    """Style of the HTML output."""

    PAGE = "page"
    RECORD = "record"


@functools.cache
def look(style: Style, name: str) -> Markup:
    """Return the attribute, with a leading space, that styles an element as `name`.

    Empty for a plain element.
    """
    if style is Style.PAGE:
        return Markup(' class="{}"').format(name)
    inline = _INLINE.get(name, "")
    return Markup(' style="{}"').format(inline) if inline else Markup()


def visible(text: str) -> str:
    """Write invisible and reordering characters out, as ``⟨U+202E⟩``.

    Control, format (bidirectional overrides, zero-width) and unpaired surrogate characters could show a
    kernel differently from how a compiler reads it. Tabs and line ends stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"⟨U+{ord(mark):04X}⟩"
        if mark not in "\t\n" and unicodedata.category(mark) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        else mark
        for mark in text
    )


def fill(template: str, style: Style, /, **values: object) -> Markup:
    """Fill ``templates/TEMPLATE.html.jinja``; every value is escaped, unless it is Markup."""
    made = _environment(style).get_template(f"{template}.html.jinja").render(values)
    return Markup(made.strip())  # noqa: S704 - the environment has escaped it


def without_math(html: str) -> Markup:
    """Wrap HTML for a notebook, so that MathJax leaves ``$0, $1`` of code as they are.

    `html` is already escaped. The classes are those of MathJax 3 (JupyterLab) and 2 (nbconvert).
    """
    return Markup('<div class="mathjax_ignore tex2jax_ignore">{}</div>').format(Markup(html))  # noqa: S704


def headline(text: str) -> str:
    """Return the first line of a message: a compiler's goes on with an excerpt."""
    return text.strip().partition("\n")[0]


def below_headline(text: str) -> str:
    """Return the lines of a message after the first; empty if it has one line."""
    return text.strip().partition("\n")[2]


def _shown(value: object) -> object:
    """Write invisible characters of a value out; Markup has that behind it."""
    return value if isinstance(value, Markup) else visible(str(value))


def extents(shape: Iterable[int]) -> str:
    """Format a shape, such as ``4,096 × 8``; ``scalar`` if it has no axis."""
    return " × ".join(f"{extent:,}" for extent in shape) or "scalar"


def pixels(value: float) -> str:
    """Format a length in pixels with one decimal, which an SVG needs no more of."""
    return f"{value:.1f}".removesuffix(".0")


@functools.cache
def _environment(style: Style) -> jinja2.Environment:
    """Return the environment of all templates; one a style, because a shared macro reads `look` from it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {"look": functools.partial(look, style), "is_page": style is Style.PAGE}
    figures = (count, duration, error, moment, scaled, share, times, extents, pixels)
    words = (who, decision_word, without_quote, ended_words, headline, below_headline)
    environment.filters |= {figure.__name__: figure for figure in (*figures, *words)}
    return environment
