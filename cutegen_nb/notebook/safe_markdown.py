"""Conversion of a model's Markdown to safe HTML, without script, link, picture, style or class."""

from __future__ import annotations

import functools

import nh3
from markdown_it import MarkdownIt

from cutegen_nb.report.markup import visible

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}


@functools.cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


@functools.lru_cache(maxsize=64)
def markdown_html(text: str) -> str:
    """Convert Markdown to HTML of `_TAGS` without attributes; a link keeps its text, a picture nothing."""
    rendered: str = _parser().render(visible(text))
    return nh3.clean(rendered, tags=_TAGS, attributes={}, url_schemes=set(), link_rel=None)
