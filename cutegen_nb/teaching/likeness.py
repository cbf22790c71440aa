"""Likeness of sources: shared sequences of syntax, without names, comments, layout and order of functions.

Sequences that most of a class use, because the task or the starter has them, weigh little.
"""

from __future__ import annotations

import ast
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_LENGTH = 4
"""Pieces of syntax in a sequence: about half a statement, so that one changed word spoils few sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one exercise, and the weighted share of their sequences that both have."""

    first: str
    """One student."""
    second: str
    """The other."""
    likeness: float
    """From 0 for nothing in common to 1 for the same syntax."""


def pairs(sources: Mapping[str, str]) -> list[Pair]:
    """Compare the sources of a class, by student, two by two; the most alike come first."""
    found = {student: sequences(source) for student, source in sources.items()}
    users = Counter(one for each in found.values() for one in each)
    weights = {one: math.log((len(found) + 1) / number) for one, number in users.items()}
    compared = [
        Pair(first=first, second=second, likeness=_shared(found[first], found[second], weights))
        for first, second in itertools.combinations(found, 2)
    ]
    return sorted(compared, key=lambda pair: -pair.likeness)


def _shared(
    one: frozenset[tuple[str, ...]],
    other: frozenset[tuple[str, ...]],
    weights: Mapping[tuple[str, ...], float],
) -> float:
    # Dice's coefficient; fsum does not depend on the order in which a set is walked.
    both, first, second = (math.fsum(weights[item] for item in each) for each in (one & other, one, other))
    return 2 * both / (first + second) if both else 0.0


def sequences(source: str) -> frozenset[tuple[str, ...]]:
    """Return the sequences of syntax in each function of a source; empty for one that is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        pieces = [list(_pieces(function.body)) for function in functions]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(
        tuple(one[start : start + _LENGTH])
        for one in pieces
        for start in range(max(1, len(one) - _LENGTH + 1))
        if one
    )


def _pieces(nodes: list[ast.stmt] | list[ast.AST]) -> Iterator[str]:
    """Yield the pieces of syntax in the order of the source: words of the DSL stay, other names do not."""
    for node in nodes:
        if _is_comment(node) or isinstance(node, ast.expr_context):
            continue
        yield _piece(node)
        yield from _pieces(list(ast.iter_child_nodes(node)))


def _piece(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.keyword):
        return f"{node.arg}="
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    return type(node).__name__


def _is_comment(node: ast.AST) -> bool:
    """Return whether a node is a text that nothing uses, such as a docstring, or an annotation's part."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
