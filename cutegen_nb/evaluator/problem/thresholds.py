"""Thresholds in a candidate's source: integers that it compares sizes with, or that cap its grid."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

_SMALLEST_THRESHOLD = 15
"""Integers above this one, outside kernels, count as thresholds: smaller ones are ranks, strides and
flags."""
_MOST_THREADS = 1024
"""Most threads of a CTA. Inside kernels, integers above this one count as thresholds: an index of a thread is
compared with smaller integers."""
_LARGEST_THRESHOLD = 1 << 40
"""Largest integer that counts as a threshold, in elements."""
_MOST_WORDS = 60
"""Characters of an expression that are quoted at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Integer at which a source may take another path."""

    value: int
    """The integer, in elements or as an extent."""
    expression: str = ""
    """Expression in the source, or a product of two: ``LIMIT``, ``MAX_CTAS * THREADS``."""
    line: int = 0
    """Line of the expression, from 1; of the first factor for a product; 0 if unknown."""
    is_product: bool = False
    """True if the source does not compute it: an argument of ``min`` times a constant of the module."""
    is_equality: bool = False
    """True if sizes are only tested for being equal to it, so that no other size lies beyond it."""

    @property
    def words(self) -> str:
        """Value and origin, to follow "the source's": ``1048576 (LIMIT on line 9)``."""
        expression = "" if self.expression == str(self.value) else self.expression[:_MOST_WORDS]
        place = f"line {self.line}" if self.line else ""
        if self.is_product:
            place = f"{place}, a minimum times a constant".removeprefix(", ")
        found = " on ".join(filter(None, [expression, place]))
        return f"{self.value} ({found})" if found else str(self.value)


def thresholds(source: str) -> tuple[Threshold, ...]:
    """Return the integers that the source compares with or divides by, the largest first.

    Named constants of the module are resolved. An argument of ``min`` may cap the number of CTAs, so that its
    multiples by small constants (threads of a CTA) count as well. They do not if a kernel reads ``grid_dim``,
    because it then loops over the grid with that stride.
    """
    tree = ast.parse(source)
    named: dict[str, int] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], _integer(statement.value, named)
            if isinstance(target, ast.Name) and value is not None:
                named[target.id] = value
    found: dict[int, Threshold] = {}
    for part, in_kernel, equality in _operands(tree, named, _device_functions(tree), in_kernel=False):
        item = _threshold(part, named)
        if item is None or item.value <= (_MOST_THREADS if in_kernel else _SMALLEST_THRESHOLD):
            continue
        if item.value not in found or (found[item.value].is_equality and not equality):
            found[item.value] = replace(item, is_equality=equality)
    for part in () if _strides_by_grid(tree) else tuple(_capped(tree)):
        item = _threshold(part, named)
        if item and item.value > _SMALLEST_THRESHOLD:
            for one in (item, *_products(item, named)):
                # What the source itself names comes before a product of the same value.
                if one.value not in found or (found[one.value].is_product and not one.is_product):
                    found[one.value] = one
    kept = (item for item in found.values() if item.value <= _LARGEST_THRESHOLD)
    return tuple(sorted(kept, key=lambda item: -item.value))


def _threshold(part: ast.expr, named: dict[str, int]) -> Threshold | None:
    value = _integer(part, named)
    # A literal beyond the largest threshold may be too long to be written out.
    if value is None or value > _LARGEST_THRESHOLD:
        return None
    return Threshold(value=value, expression=ast.unparse(part), line=part.lineno)


def _products(item: Threshold, named: dict[str, int]) -> Iterator[Threshold]:
    """Yield the multiples of a cap by the module's small constants, such as the threads of a CTA."""
    for name, factor in named.items():
        if 1 < factor <= _MOST_THREADS and name != item.expression:
            expression = f"{item.expression} * {name}"
            yield Threshold(value=item.value * factor, expression=expression, line=item.line, is_product=True)


def _strides_by_grid(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "grid_dim" for node in ast.walk(tree))


def _capped(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the arguments of ``min`` outside kernels."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and _is_kernel(child):
            continue
        if isinstance(child, ast.Call) and "min" in {
            getattr(child.func, "id", ""),
            getattr(child.func, "attr", ""),
        }:
            yield from child.args
        yield from _capped(child)


def _operands(
    node: ast.AST, named: dict[str, int], device: frozenset[str], *, in_kernel: bool
) -> Iterator[tuple[ast.expr, bool, bool]]:
    """Yield both sides of comparisons and divisors of ``//``.

    Each comes with True if it is inside a kernel or one of the functions `device`, and with True if it is
    compared for equality alone. Between constants alone (``THREADS // 32``) no size decides.
    """
    for child in ast.iter_child_nodes(node):
        inside = in_kernel or (
            isinstance(child, ast.FunctionDef) and (_is_kernel(child) or child.name in device)
        )
        if isinstance(child, ast.Compare):
            sides = (child.left, *child.comparators)
            known = all(_integer(part, named) is not None for part in sides)
            equality = all(isinstance(one, ast.Eq | ast.NotEq) for one in child.ops)
            yield from () if known else ((part, inside, equality) for part in sides)
        if isinstance(child, ast.BinOp) and isinstance(child.op, ast.FloorDiv):
            yield from () if _integer(child.left, named) is not None else ((child.right, inside, False),)
        yield from _operands(child, named, device, in_kernel=inside)


def _device_functions(tree: ast.AST) -> frozenset[str]:
    """Return the names of the functions that only kernels call, and functions that they call."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    reads = [(id(node), name) for node in ast.walk(tree) if (name := _name_read(node))]
    kernels = {one.name for one in functions if _is_kernel(one)}
    device: frozenset[str] = frozenset()
    while True:
        parts = [one for one in functions if one.name in kernels | device]
        inside = {id(node) for one in parts for node in ast.walk(one)}
        # A name that stands elsewhere too may be called by the host, also as an argument of another function.
        elsewhere = {name for node, name in reads if node not in inside}
        called = {name for node, name in reads if node in inside} - elsewhere - kernels
        more = frozenset(one.name for one in functions if one.name in called)
        if more <= device:
            return device
        device |= more


def _name_read(node: ast.AST) -> str:
    """Return the name that an expression reads: ``f``, and ``f`` of ``self.f``; empty for none."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) else ""


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "kernel"
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
    )


def _integer(node: ast.expr, named: dict[str, int]) -> int | None:
    """Evaluate an expression of integer literals and named constants; None for any other."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return named.get(node.id)
    if isinstance(node, ast.BinOp):
        left, right = _integer(node.left, named), _integer(node.right, named)
        # The bounds keep candidates' source from building integers of unbounded size here.
        if left is None or right is None or abs(left) > _LARGEST_THRESHOLD or not 0 <= right <= 1 << 20:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.LShift):
            return left << right if right < 64 else None  # noqa: PLR2004 - no size is longer
        if isinstance(node.op, ast.Pow):
            return left**right if right < 64 else None  # noqa: PLR2004 - no size is larger
    return None
