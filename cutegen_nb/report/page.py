"""One HTML file that needs nothing else: its frame, and writing it whole or not at all."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from cutegen_nb.core.errors import StoreError, UsageError
from cutegen_nb.report.markup import safe

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What the page may do, should text ever escape its escaping: nothing but show itself."""


def page(title: str, body: str) -> str:
    """The whole page; `title` is text, `body` HTML."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{safe(_POLICY)}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>{_css()}</style>\n</head>\n<body>\n"
        f"{body}</body>\n</html>\n"
    )


def fact_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with their values, as text, in the form of a page's head."""
    items = "".join(f"<dt>{safe(name)}</dt><dd>{safe(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{items}</dl>'


def check_target(path: str, example: str) -> Path:
    """The path as one to write to. Raises UsageError when it is a folder or its folder is missing."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it, such as {target / example}.")
    if not target.parent.is_dir():
        raise UsageError(f"The folder {target.parent} does not exist; create it or choose another.")
    return target


def write_whole(text: str, target: Path) -> None:
    """Write a text to a file, whole or not at all. Raises StoreError when it cannot be written."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        # Unpaired surrogates cannot be encoded; visible() writes them out, this is for what it does not see.
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
        draft.replace(target)
    except OSError as fault:
        _remove(draft)
        reason = fault.strerror or type(fault).__name__
        raise StoreError(
            f"The report could not be written to {target}: {reason}. "
            "Choose another folder or free some space."
        ) from fault


@functools.cache
def _css() -> str:
    return files("cutegen_nb.report").joinpath("page.css").read_text(encoding="utf-8")


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
