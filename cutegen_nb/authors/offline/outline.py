"""Shortening of a kernel file to a number of characters: some functions whole, of the others a line each."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines of a file that stand together."""

    text: str
    """Text of the lines."""
    name: str = ""
    """Name of the function or class; empty for other lines."""
    short: str = ""
    """Line that stands for the function or class where there is no room."""


def outlined(source: str, focus: Sequence[str], longest: int) -> str:
    """Shorten a source to `longest` characters, as far as one line for each function permits.

    The file's own docstring is dropped. Where that is not enough, functions whose names match the patterns in
    `focus` are kept, in that order, each where it fits.
    """
    parts = _parts(source)
    whole = "".join(part.text for part in parts)
    if len(whole) <= longest:
        return _tidy(whole)
    shown = {part.name: part.short for part in parts if part.name}
    length = sum(len(part.short or part.text) for part in parts)
    for part in (part for pattern in focus for part in parts if fnmatch(part.name, pattern)):
        more = len(part.text) - len(shown[part.name])
        if length + more <= longest:
            shown[part.name] = part.text
            length += more
    return _tidy("".join(shown[part.name] if part.name else part.text for part in parts))


def _parts(source: str) -> list[_Part]:
    """Split a file at its functions and classes; everything between them is a part too."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    start = tree.body[0].end_lineno or 0 if ast.get_docstring(tree) is not None else 0
    parts = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)]) - 1
            parts.append(_Part("".join(lines[start:first])))
            start = node.end_lineno or len(lines)
            parts.append(_Part("".join(lines[first:start]), node.name, _short(node)))
    return [*parts, _Part("".join(lines[start:]))]


def _short(node: ast.FunctionDef | ast.ClassDef) -> str:
    """One line for a function or class: its parameters and the first line of its docstring."""
    first = (ast.get_docstring(node) or "").partition("\n")[0]
    comment = f"  # {first}" if first else ""
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}: ...{comment}\n"
    parameters = ", ".join(item.arg for item in (*node.args.args, *node.args.kwonlyargs))
    return f"def {node.name}({parameters}): ...{comment}\n"


def _tidy(text: str) -> str:
    """Leave at most two empty lines in a row, and one between lines that stand for functions."""
    lines: list[str] = []
    for line in text.strip().splitlines():
        if line or not lines or lines[-1]:
            lines.append(line)
    return "\n".join(lines) + "\n"
