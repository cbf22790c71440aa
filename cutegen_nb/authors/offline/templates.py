"""Kernel sources by name, read as text from ``cutegen_nb/kernels``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2

_FOLDER = Path(__file__).resolve().parents[2] / "kernels"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - Python source, never HTML
        keep_trailing_newline=True,
    )


def render(template: str, /, **values: object) -> str:
    """The template ``TEMPLATE.py.jinja`` with `values` filled in; a missing value is an error."""
    return _environment().get_template(f"{template}.py.jinja").render(**values)


def joined(lines: Sequence[str]) -> str:
    """Lines as one block of text."""
    return "\n".join(lines)


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Lines moved right by `depth` levels."""
    return ["    " * depth + line if line else line for line in lines]
