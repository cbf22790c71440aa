"""Search for a smaller size of a problem that the simulator can run: integer literals shrink, nothing else.

Literals outside functions and classes may shrink, and those inside ``get_inputs`` and ``get_init_inputs``.
Equal literals shrink together, so that sizes that agree keep agreeing. The largest value is halved first and
keeps its alignment: a multiple of 16 stays one as long as possible, an odd size stays odd, 4·odd stays 4·odd.
So a kernel that fails at full size (a vector tail, a misaligned row) still fails. Every step is measured by
tracing under fake tensors; a step that raises, changes the operations or loses a dimension is not taken.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cutegen_nb.core.problem import Problem, Rewrite

_VECTOR = 16
"""Elements in the widest vector access of any supported dtype (16 bytes of int8)."""
_PHASES = ((32, 32), (32, 8), (16, 4), (4, 2))
"""Phases of the search, in order: (smallest literal in the file that may shrink, smallest value it may get).
Kernel sizes, strides and indices of dimensions are smaller than nearly every extent and so stay."""
_MOST_TRIALS = 160
"""Traces after which the search stops."""
_MOST_NODES = 8_000
"""Traced operations, over all traces, after which the search stops: about 0.5 ms each. A network of hundreds
of layers, which seldom scales, is given up after some seconds."""
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


def choose_scale(
    problem: Problem, full: TrialSize, measure: Measure, budget: SizeBudget
) -> tuple[Rewrite, ...] | None:
    """Find rewrites under which `problem` fits `budget`: () if it fits already, None if there are none."""
    if budget.holds(full):
        return ()
    literals = tuple(literals_of(problem.source))
    search = _Search(literals=literals, full=full, measure=measure, trials=[])
    values = {value: value for _, _, value in literals}
    for smallest, floor in _PHASES:
        values, measured = search.shrink(values, smallest, floor, budget)
        if measured is not None and budget.holds(measured):
            return search.rewrites(values)
    return None


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
    trials: list[TrialSize | None]
    """Measures of the trials so far; None for a trial that raised."""

    def rewrites(self, values: dict[int, int]) -> tuple[Rewrite, ...]:
        """Return a rewrite for each literal that `values` (new value by value in the file) changes."""
        return tuple(
            Rewrite(line=line, column=column, full=value, scaled=values[value])
            for line, column, value in self.literals
            if values[value] != value
        )

    def shrink(
        self, values: dict[int, int], smallest: int, floor: int, budget: SizeBudget
    ) -> tuple[dict[int, int], TrialSize | None]:
        """Shrink `values` until the budget holds or none can shrink; return them and their measure.

        The largest value shrinks first. If it cannot shrink alone, all values that may still shrink are tried
        together once; after that the value is left as it is. The measure is None if no trial was accepted.
        """
        stuck: set[int] = set()
        measured: TrialSize | None = None
        while len(self.trials) < min(_MOST_TRIALS, _MOST_NODES // max(self.full.nodes, 1)):
            open_values = [
                value
                for value, now in values.items()
                if value >= smallest and value not in stuck and shrunk(now, floor) < now
            ]
            if not open_values:
                return values, measured
            largest = max((values[value], value) for value in open_values)[1]
            for group in ([largest], open_values):
                trial = {v: shrunk(now, floor) if v in group else now for v, now in values.items()}
                result = self._accepted(trial)
                if result is not None:
                    values, measured = trial, result
                    break
            else:
                stuck.add(largest)
            if measured is not None and budget.holds(measured):
                return values, measured
        return values, measured

    def _accepted(self, values: dict[int, int]) -> TrialSize | None:
        """Measure a trial; None if it raises or is another problem than the full size."""
        result = self.measure(self.rewrites(values))
        self.trials.append(result)
        return result if result is not None and result.character == self.full.character else None
