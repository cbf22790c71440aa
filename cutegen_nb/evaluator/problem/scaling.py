"""Search for a smaller size of a problem that the simulator can run: integer literals shrink, nothing else.

Literals outside functions and classes may shrink, and those inside ``get_inputs`` and ``get_init_inputs``.
Equal literals shrink together, so that sizes that agree keep agreeing. The largest value is halved first and
keeps its alignment: a multiple of 16 stays one as long as possible, an odd size stays odd, 4·odd stays 4·odd.
So a kernel that fails at full size (a vector tail, a misaligned row) still fails. Steps are measured by
tracing under fake tensors; one that raises, changes the operations or loses a dimension is not taken.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cutegen_nb.core.problem import Problem, Rewrite

_VECTOR = 16
"""Elements in the widest vector access of any supported dtype (16 bytes of int8)."""
_PHASES = ((32, 32), (32, 8), (16, 4), (4, 2))
"""Phases of the search, in order: (smallest literal in the file that may shrink, smallest value it may get).
Kernel sizes, strides and indices of dimensions are smaller than nearly every extent and so stay."""
_MOST_STEPS = 160
"""More steps than a search has."""
_MOST_TRIALS = 160
"""Traces after which the search stops."""
_MOST_NODES = 4_000
"""Traced operations, over all traces, after which the search stops: 2 to 4 ms each. A network of hundreds of
layers, which seldom scales, is given up after about 10 s."""
_LITTLE_MORE = 1.1
"""Factor in cost up to which a larger size is preferred, where none fits: more of the kernel's cases run."""
_INPUT_FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})
"""Functions inside which literals may shrink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSize:
    """Cost of one trial size, and a key that tells if it is still the same problem."""

    elements: int
    """Elements of inputs, parameters and outputs together."""
    flops: int
    """Floating-point operations of the reference."""
    nodes: int
    """Operations in the trace."""
    character: tuple[object, ...]
    """Key that is equal for two sizes of one problem: operations, ranks, numbers passed, extents of 1."""


Measure = Callable[[tuple[Rewrite, ...]], "TrialSize | None"]
"""Function that traces the problem with rewrites applied; None if the problem raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBudget:
    """Largest problem that the simulator is given."""

    elements: int = 2**18
    """Elements of inputs, parameters and outputs together: a megabyte of float32."""
    flops: int = 2**26
    """Floating-point operations: a product of 256×512×256, a few seconds on the simulator at most."""

    def holds(self, measured: TrialSize) -> bool:
        """Return whether `measured` is within the budget."""
        return measured.elements <= self.elements and measured.flops <= self.flops

    def excess(self, measured: TrialSize) -> float:
        """Return about how many times the budget's cost a size has; 0 if the budget holds."""
        cost = measured.elements / self.elements + measured.flops / self.flops
        return 0 if self.holds(measured) else cost


def choose_scale(
    problem: Problem, full: TrialSize, measure: Measure, budget: SizeBudget
) -> tuple[Rewrite, ...]:
    """Find rewrites under which `problem` fits `budget`: () if it fits already, or if it has no smaller size.

    Where no size fits, those of the smallest are returned, or of a larger one that costs little more.
    """
    if budget.holds(full):
        return ()
    literals = tuple(literals_of(problem.source))
    search = _Search(literals=literals, full=full, measure=measure, budget=budget)
    values = {value: value for _, _, value in literals}
    for smallest, floor in _PHASES:
        values, measured = search.shrink(values, smallest, floor)
        if measured is not None and budget.holds(measured):
            return search.rewrites(values)
    return search.cheapest()


def literals_of(source: str) -> Iterator[tuple[int, int, int]]:
    """Yield (line, column, value) of each integer literal that scaling may change."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom):
            continue
        if isinstance(statement, ast.FunctionDef) and statement.name not in _INPUT_FUNCTIONS:
            continue
        for node in _outside_indices(statement):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
                yield node.lineno, node.col_offset, node.value


def _outside_indices(node: ast.AST) -> Iterator[ast.AST]:
    """Yield `node` and its descendants, except subscripts, keywords that name a dimension, and seeds."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Subscript) and child is node.slice:
            continue
        if isinstance(child, ast.keyword) and child.arg in {"dim", "axis"}:
            continue
        if isinstance(child, ast.Call) and _called(child) in {"manual_seed", "seed"}:
            continue
        yield from _outside_indices(child)


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def shrunk(value: int, floor: int) -> int:
    """Return about half of `value`, with the same alignment up to 16; `value` if that is below `floor`.

    ``4096 → 2048``, ``4095 → 2047``, ``12 → 4``, ``1000 → 504``. A power of two up to 16, for which that is
    impossible, is halved: ``16 → 8``.
    """
    common = _alignment(value)
    # common · odd for alignments below 16; a multiple of 16 may become any smaller multiple.
    half = common * _odd_if(common < _VECTOR, value // common // 2)
    if half >= value:
        half = value // 2
    return half if floor <= half < value else value


def _alignment(value: int) -> int:
    """Return the largest power of two up to 16 that divides `value`."""
    # value & -value is the lowest set bit in two's complement.
    return min(value & -value, _VECTOR)


def _odd_if(odd: bool, value: int) -> int:  # noqa: FBT001 — one private caller
    return max(1, value | 1 if odd else value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """One search: its inputs and the trials made so far."""

    literals: tuple[tuple[int, int, int], ...]
    """Line, column and value of each literal."""
    full: TrialSize
    """Measure of the size in the file."""
    measure: Measure
    """Function that measures a trial."""
    budget: SizeBudget
    """Largest size that ends the search."""
    trials: dict[tuple[Rewrite, ...], TrialSize | None] = field(default_factory=dict)
    """Measures of the trials so far; None for a trial that raised or is another problem."""
    failed: set[int] = field(default_factory=set)
    """Values that could not shrink at some point."""

    def rewrites(self, values: dict[int, int]) -> tuple[Rewrite, ...]:
        """Return a rewrite for each literal that `values` (new value by value in the file) changes."""
        return tuple(
            Rewrite(line=line, column=column, full=value, scaled=values[value])
            for line, column, value in self.literals
            if values[value] != value
        )

    def shrink(
        self, values: dict[int, int], smallest: int, floor: int
    ) -> tuple[dict[int, int], TrialSize | None]:
        """Shrink `values` until the budget holds or none can shrink; return them and their measure.

        Values that could not shrink in an earlier phase wait where the others can do all their steps without
        them. The measure is None if no trial was accepted.
        """
        able = {value for value in values if value >= smallest}
        others = able - self.failed
        measured: TrialSize | None = None
        path = self._path(values, others, floor, _MOST_STEPS)
        if others != able and path and self._accepted(path[-1]) is not None:
            values, measured = self._stepped(values, others, floor)
        if measured is None or not self.budget.holds(measured):
            values, last = self._stepped(values, able, floor)
            measured = last or measured
        return values, measured

    def _stepped(
        self, values: dict[int, int], able: set[int], floor: int
    ) -> tuple[dict[int, int], TrialSize | None]:
        """Shrink those of `values` in `able`, the largest first.

        If it cannot shrink alone, all that may still shrink are tried together once; after that it is left as
        it is. Many steps are measured as one: all that are left first, and half as many where those are
        rejected or more than needed. So the result is that of single steps.
        """
        measured: TrialSize | None = None
        # Steps to a size that is rejected, or that holds; more if none is known.
        far = 1 if able & self.failed else _MOST_STEPS
        while path := self._path(values, able, floor, max(1, far // 2)):
            trial, steps = path[-1], len(path)
            result = self._accepted(trial)
            if steps > 1 and (result is None or self.budget.holds(result)):
                far = steps
                continue
            if result is None:
                trial, steps = values | _smaller(values, able, floor), far
                result = self._accepted(trial)
            if result is None:
                stuck = {value for value in able if path[0][value] != values[value]}
                able = able - stuck
                self.failed.update(stuck)
                far = _MOST_STEPS
                continue
            values, measured, far = trial, result, far - steps
            if self.budget.holds(result):
                break
        return values, measured

    def _path(self, values: dict[int, int], able: set[int], floor: int, most: int) -> list[dict[int, int]]:
        """Return the values after one step, two steps, and so on up to `most`."""
        path: list[dict[int, int]] = []
        while len(path) < most and (smaller := _smaller(values, able, floor)):
            largest = max((values[value], value) for value in smaller)[1]
            values = values | {largest: smaller[largest]}
            path.append(values)
        return path

    def _accepted(self, values: dict[int, int]) -> TrialSize | None:
        """Measure a trial, once; None if it raises, is another problem, or comes after the last trial."""
        rewrites = self.rewrites(values)
        if rewrites not in self.trials:
            if len(self.trials) >= min(_MOST_TRIALS, _MOST_NODES // max(self.full.nodes, 1)):
                return None
            result = self.measure(rewrites)
            same = result is not None and result.character == self.full.character
            self.trials[rewrites] = result if same else None
        return self.trials[rewrites]

    def cheapest(self) -> tuple[Rewrite, ...]:
        """Return the rewrites of the size with the least excess, or of a larger one with little more."""
        sizes: dict[tuple[Rewrite, ...], TrialSize | None] = {(): self.full, **self.trials}
        excess = {key: self.budget.excess(size) for key, size in sizes.items() if size is not None}
        most = _LITTLE_MORE * min(excess.values())
        return max((key for key in excess if excess[key] <= most), key=excess.__getitem__)


def _smaller(values: dict[int, int], able: set[int], floor: int) -> dict[int, int]:
    """Return the next size of each value in `able` that may still shrink."""
    halves = {value: shrunk(values[value], floor) for value in able}
    return {value: half for value, half in halves.items() if half < values[value]}
