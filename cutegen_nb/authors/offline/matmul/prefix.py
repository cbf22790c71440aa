"""Prefix for the names at module level of a text, so that several such texts fit into one module."""

from __future__ import annotations

import ast
import re


def with_prefix(text: str, prefix: str, stem: str) -> str:
    """Let every name that `text` defines at module level begin with `prefix`, constants in upper case.

    A name that begins with `stem` has it replaced. Words of comments and docstrings are left alone, except
    for constants and names with an underscore, which are no English words.
    """
    tree = ast.parse(text)
    defined = {name for node in tree.body for name in _defined(node)} - {prefix}
    renamed = {name: _renamed(name, prefix, stem) for name in defined}
    lines = text.split("\n")
    places = [
        (node.lineno, node.col_offset, node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)
    ]
    # From the end of a line to its start, so that the columns before stay right.
    for line, column, name in sorted(set(places), reverse=True):
        # Columns count bytes; the part before a name may hold longer characters.
        row = lines[line - 1].encode()
        if name in renamed and row[column:].startswith(name.encode()):
            rest = row[column + len(name) :]
            lines[line - 1] = (row[:column] + renamed[name].encode() + rest).decode()
    text = "\n".join(lines)
    for name, new in renamed.items():
        text = re.sub(rf"^((?:def|class) ){name}\b", rf"\g<1>{new}", text, flags=re.MULTILINE)
        if name.isupper() or "_" in name:
            text = re.sub(rf"(?<![\w.]){name}\b(?!=)", new, text)
    return text


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [item.id for target in node.targets for item in ast.walk(target) if isinstance(item, ast.Name)]
    return []


def _renamed(name: str, prefix: str, stem: str) -> str:
    if name.isupper():
        return f"{prefix.upper()}_{name}"
    return f"{prefix}_{name.removeprefix(f'{stem}_')}"
