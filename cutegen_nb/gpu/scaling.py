"""Choosing a size at which the simulator can run a problem: integer literals shrunk, nothing else changed.

Only literals outside functions and classes are touched, and those inside ``get_inputs`` and
``get_init_inputs``; equal literals shrink together, so that sizes which agree keep agreeing.  The largest
value is halved first and keeps its character: a multiple of 16 stays one for as long as it can, an odd
size stays odd, a size that is 4·odd stays 4·odd, so that what breaks at full size (a vector tail, a
misaligned row) still breaks.  Every step is measured by tracing under fake tensors, and a step that
raises, changes the operations or loses a dimension is not taken.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cutegen_nb.core.problem import Problem, Rewrite

_VECTOR = 16
"""Elements in the widest vector access of any supported dtype (16 bytes of int8)."""
_PHASES = ((32, 32), (32, 8), (16, 4), (4, 2))
"""(smallest literal in the file that may shrink, smallest value it may shrink to), tried in this order:
a kernel size, a stride or a dimension's index is smaller than nearly every extent and stays."""
_MOST_TRIALS = 160
_MOST_NODES = 8_000
"""The search stops after this many traces, or once they have traced this many operations together: about
0.5 ms each. A network of hundreds of layers, which seldom scales, is given up after some seconds."""
_INPUT_FUNCTIONS = frozenset({"get_inputs", "get_init_inputs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one trial size costs and whether it is still the same problem."""

    elements: int
    """Inputs, parameters and outputs together."""
    flops: int
    """Floating-point operations of the reference."""
    nodes: int
    """Operations in the trace."""
    character: tuple[object, ...]
    """Equal for two sizes of one problem: operations, ranks, numbers passed, which extents are 1."""


Measure = Callable[[tuple[Rewrite, ...]], "Measured | None"]
"""Traces the problem with these rewrites; None where it raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How large a problem the simulator is given."""

    elements: int = 2**18
    """Inputs, parameters and outputs: a megabyte of float32."""
    flops: int = 2**26
    """Keeps a product at 256×512×256: a few seconds on the simulator at most."""

    def holds(self, measured: Measured) -> bool:
        """Whether `measured` fits."""
        return measured.elements <= self.elements and measured.flops <= self.flops


def choose_scale(
    problem: Problem, full: Measured, measure: Measure, budget: Budget
) -> tuple[Rewrite, ...] | None:
    """Rewrites under which `problem` fits `budget`; () where it does already, None where none was found."""
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
    """(line, column, value) of each integer literal that scaling may change."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom):
            continue
        if isinstance(statement, ast.FunctionDef) and statement.name not in _INPUT_FUNCTIONS:
            continue
        for node in _outside_indices(statement):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
                yield node.lineno, node.col_offset, node.value


def _outside_indices(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and what it contains, but not subscripts, keywords that name a dimension, or seeds."""
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
    """About half of `value`, with the same divisor in common with 16; `value` itself where that is < floor.

    ``4096 → 2048``, ``4095 → 2047``, ``12 → 4``, ``1000 → 504``. A multiple of 16 that has come down to
    16 goes on as a plain power of two.
    """
    common = _alignment(value)
    half = common * _odd_if(common < _VECTOR, value // common // 2)
    if half >= value:
        half = value // 2
    return half if floor <= half < value else value


def _alignment(value: int) -> int:
    """The largest power of two up to 16 that divides `value`."""
    return min(value & -value, _VECTOR)


def _odd_if(odd: bool, value: int) -> int:  # noqa: FBT001 — one private caller
    return max(1, value | 1 if odd else value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """One search's fixed parts and its count of trials."""

    literals: tuple[tuple[int, int, int], ...]
    """Position and value of each literal."""
    full: Measured
    """The size in the file."""
    measure: Measure
    """What a trial is measured with."""
    trials: list[Measured | None]
    """One entry a trial so far."""

    def rewrites(self, values: dict[int, int]) -> tuple[Rewrite, ...]:
        """The literals that `values` (by value in the file) changes."""
        return tuple(
            Rewrite(line=line, column=column, full=value, scaled=values[value])
            for line, column, value in self.literals
            if values[value] != value
        )

    def shrink(
        self, values: dict[int, int], smallest: int, floor: int, budget: Budget
    ) -> tuple[dict[int, int], Measured | None]:
        """`values` shrunk until the budget holds or nothing eligible is left, and its measure.

        The largest value goes first; where it cannot go alone, all that are as large or larger in the
        file go together once; then it is left as it is.
        """
        stuck: set[int] = set()
        measured: Measured | None = None
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

    def _accepted(self, values: dict[int, int]) -> Measured | None:
        """The trial's measure, where it is still the same problem."""
        result = self.measure(self.rewrites(values))
        self.trials.append(result)
        return result if result is not None and result.character == self.full.character else None
