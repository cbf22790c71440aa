"""Comparison of kernel files by their code."""

from __future__ import annotations

import ast

from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session


def same_code(one: str, other: str) -> bool:
    """Return whether two sources differ in comments and docstrings of their modules alone.

    The title of a file names the strategies applied, so it differs where the code does not.
    """
    return _code(one) == _code(other)


def twin(source: str, session: Session) -> Round | None:
    """Return the first round whose kernel has this code; None for new code."""
    made = ((item, item.candidate) for item in session.rounds)
    code = _code(source)
    return next((item for item, kernel in made if kernel and _code(kernel.source) == code), None)


def _code(source: str) -> str:
    """Return the syntax tree of a file without its docstring; of a text that does not parse, the text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a person's edit
        return source
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    return ast.dump(ast.Module(body=body, type_ignores=[]))
