"""Accumulators of reductions: start values, updates, and merging across threads.

Two dependent reductions can share one reading of the data: a softmax's maximum and its sum of exponentials
(Milakov and Gimelshein, 2018), or a mean and its sum of squared deviations. The deviations are taken around
the middle one of three of the row's elements, which avoids cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_nb.authors.offline.expressions.expressions import (
    Apply,
    Expr,
    Leaf,
    ValueType,
    cast,
    grouped,
    kind_of,
    leaves,
    same,
)

LOWEST_FLOAT32 = "-3.4028234663852886e38"
"""Start of an online softmax; with −inf, −inf − (−inf) would be NaN before the first element."""

_JOIN = {
    "sum": "add", "prod": "multiply", "max": "larger", "min": "smaller", "any": "larger", "all": "smaller",
    "argmax": "larger_at", "argmin": "smaller_at", "softmax": "merge_softmax", "moments": "add_both",
}  # fmt: skip
"""Function of the generated file that merges two states, by kind of reduction."""
_START = {
    "sum": {"f": "0.0", "i": "0"},
    "prod": {"f": "1.0", "i": "1"},
    "max": {"f": 'float("-inf")', "Int32": "-(2**31)", "Int64": "-(2**63)"},
    "min": {"f": 'float("inf")', "Int32": "2**31 - 1", "Int64": "2**63 - 1"},
    "any": {"i": "0"},
    "all": {"i": "1"},
}
"""Identity element by kind of reduction, and by type: ``f`` for floats, ``i`` for integers, or one type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """Reduction of all elements of `expr` to one number a row."""

    name: str
    """Name of the operation, and of the register that holds the result."""
    how: str
    """Kind of reduction: ``sum``, ``max``, ``argmax`` …"""
    expr: Expr
    """Expression of one element."""
    dtype: str
    """dtype of the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRegister:
    """One register of an accumulator."""

    name: str
    """Name in the kernel."""
    kind: ValueType
    """Type of the value."""
    start: str
    """Value before the first element, as a literal."""

    @property
    def initial(self) -> str:
        """Statement that sets the register to its start."""
        return f"{self.name} = cutlass.{self.kind.value}({self.start})"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Accumulator of one reduction, or of two that run as one."""

    how: str
    """Kind of reduction, as in Reduction, or ``softmax`` or ``moments``."""
    parts: tuple[StateRegister, ...]
    """Registers of the accumulator."""
    expr: Expr
    """Expression of the element added."""
    results: tuple[str, ...]
    """Names of the reductions that the accumulator finishes."""
    count: Expr | None = None
    """For moments: the number of elements of a row."""

    @property
    def join(self) -> str:
        """Name of the function that merges two states."""
        return _JOIN[self.how]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the registers."""
        return tuple(part.name for part in self.parts)

    @property
    def needs_place(self) -> bool:
        """True if the update needs the element's column (argmax, argmin)."""
        return self.how.startswith("arg")

    @property
    def shift(self) -> str:
        """For moments: the register with the shift, an element of the row; empty otherwise."""
        return f"{self.results[0]}_shift" if self.how == "moments" else ""

    @property
    def is_float_sum(self) -> bool:
        """True if the accumulator adds floats, so that its rounding error grows with the number of terms."""
        return self.how in ("sum", "softmax", "moments") and self.parts[-1].kind in (
            ValueType.F32,
            ValueType.F64,
        )

    def of_block(self) -> State:
        """The same accumulator for one block of a row, in registers of its own."""
        return replace(self, parts=tuple(replace(part, name=f"{part.name}_block") for part in self.parts))

    @property
    def starts(self) -> list[str]:
        """Statements that set the registers to their start."""
        return [part.initial for part in self.parts]

    def take(self, value: str) -> list[str]:
        """Statements that add an element, given as text."""
        names = ", ".join(self.names)
        if self.how in ("sum", "prod"):
            sign = "+" if self.how == "sum" else "*"
            return [f"{names} = {names} {sign} {grouped(value)}"]
        if self.how == "softmax":
            # An element x is a state of its own: maximum x, and a sum of exponentials e^(x − x) = 1.
            return [f"{names} = {self.join}({names}, {value}, cutlass.Float32(1.0))"]
        if self.needs_place:
            return [f"{names} = {self.join}({names}, {value}, cutlass.Int32(col))"]
        if self.how == "moments":
            return [
                f"deviation = {value}",
                f"{names} = {self.join}({names}, deviation, deviation * deviation)",
            ]
        return [f"({names},) = {self.join}({names}, {value})"]

    def joined(self, others: Sequence[str]) -> str:
        """Statement that merges another state, given by the texts of its parts."""
        left = ", ".join(self.names)
        target = left if len(self.parts) > 1 else f"({left},)"
        if self.how == "sum":
            return f"{left} = {left} + {others[0]}"
        return f"{target} = {self.join}({left}, {', '.join(others)})"

    def across(self, lanes: str) -> str:
        """Statement that merges the states of neighbouring lanes of a warp, in groups of `lanes`."""
        names = ", ".join(self.names)
        comma = "," if len(self.parts) == 1 else ""
        target = f"({names},)" if comma else names
        return f"{target} = across_lanes({self.join}, {lanes}, ({names}{comma}))"

    def finish(self, count: str) -> list[str]:
        """Statements that turn the merged state into the results, where the state is not the result."""
        if self.needs_place:
            return [f"{self.results[0]} = {self.names[1]}.to(cutlass.Int64)"]
        if self.names[0].endswith("_flag"):
            return [f"{self.results[0]} = {self.names[0]} != 0"]
        if self.how != "moments":
            return []
        total, squares = self.names
        first, second = self.results
        # With d = x − x₀ over n elements: Σ(x − mean)² = Σd² − (Σd)²/n, and Σx = n·x₀ + Σd.
        return [
            f"{second} = {squares} - {total} * {total} / {count}",
            f"{first} = {self.shift} * {count} + {total}",
        ]


def state_of(item: Reduction) -> State:
    """Accumulator of a single reduction."""
    kind = kind_of(item.dtype)
    if item.how in ("any", "all"):
        expr = cast(cast(item.expr, ValueType.BOOL), ValueType.I32)
        flag = _part(f"{item.name}_flag", item.how, ValueType.I32)
        return State(how=item.how, parts=(flag,), expr=expr, results=(item.name,))
    if item.how.startswith("arg"):
        held = ValueType.I32 if item.expr.kind is ValueType.BOOL else item.expr.kind
        best = _part(f"{item.name}_best", item.how.removeprefix("arg"), held)
        # The largest index loses every tie: of equal values the first column wins, as in torch.
        place = StateRegister(name=f"{item.name}_at", kind=ValueType.I32, start="2**31 - 1")
        return State(how=item.how, parts=(best, place), expr=cast(item.expr, held), results=(item.name,))
    if kind is ValueType.BOOL:
        flag = _part(f"{item.name}_flag", item.how, ValueType.I32)
        return State(how=item.how, parts=(flag,), expr=cast(item.expr, ValueType.I32), results=(item.name,))
    part = _part(item.name, item.how, kind)
    return State(how=item.how, parts=(part,), expr=cast(item.expr, kind), results=(item.name,))


def _part(name: str, how: str, kind: ValueType) -> StateRegister:
    table = _START[how]
    start = table.get(kind.value) or table.get("f" if kind in (ValueType.F32, ValueType.F64) else "i") or "0"
    return StateRegister(name=name, kind=kind, start=start)


def states(passes: Sequence[Sequence[Reduction]], *, merge: bool) -> tuple[tuple[State, ...], ...]:
    """Accumulators of each pass; with `merge`, pairs that can share a reading of the data are merged."""
    remaining = [list(group) for group in passes]
    result: list[tuple[State, ...]] = []
    merged: list[list[State]] = [[] for _ in remaining]
    if merge:
        for at in range(len(remaining) - 1):
            for item in list(remaining[at]):
                partner = next((other for other in remaining[at + 1] if _pair(item, other)), None)
                if partner is not None:
                    merged[at].append(_joint(item, partner))
                    remaining[at].remove(item)
                    remaining[at + 1].remove(partner)
    for group, joint in zip(remaining, merged, strict=True):
        current = (*joint, *(state_of(item) for item in group))
        if current:
            result.append(current)
    return tuple(result)


def _pair(first: Reduction, second: Reduction) -> str:
    """Return ``softmax`` or ``moments`` if `second` can run together with `first`; otherwise nothing."""
    if second.how != "sum" or first.expr.kind is not ValueType.F32 or first.name not in leaves(second.expr):
        return ""
    element = second.expr
    if first.how == "max" and isinstance(element, Apply) and element.op == "exp":
        return "softmax" if _is_difference(element.args[0], first) else ""
    if first.how == "sum" and isinstance(element, Apply) and element.op == "*":
        left, right = element.args
        return "moments" if same(left, right) and _is_deviation(left, first) else ""
    return ""


def _is_difference(expr: Expr, first: Reduction) -> bool:
    """Return whether `expr` is the element of `first` minus its result."""
    if not (isinstance(expr, Apply) and expr.op == "-" and same(expr.args[0], first.expr)):
        return False
    right = expr.args[1]
    return isinstance(right, Leaf) and right.name == first.name


def _is_deviation(expr: Expr, first: Reduction) -> bool:
    """Return whether `expr` is the element of `first` minus its mean."""
    if not (isinstance(expr, Apply) and expr.op == "-" and same(expr.args[0], first.expr)):
        return False
    mean = expr.args[1]
    return isinstance(mean, Apply) and mean.op == "/" and _names(mean.args[0], first.name)


SHIFT_REASON = (
    "# Deviations are taken around an element of the row, so that squares do not cancel: the middle one of",
    "# three, as around an outlier they would cancel again.",
)
"""Comment of the generated kernel on its shift."""


def middle(a: str, b: str, c: str) -> str:
    """Expression of the median of three registers."""
    return f"cutlass.max(cutlass.min({a}, {b}), cutlass.min(cutlass.max({a}, {b}), {c}))"


def _names(expr: Expr, name: str) -> bool:
    return isinstance(expr, Leaf) and expr.name == name


def _joint(first: Reduction, second: Reduction) -> State:
    results = (first.name, second.name)
    if _pair(first, second) == "softmax":
        parts: tuple[StateRegister, ...] = (
            StateRegister(name=first.name, kind=ValueType.F32, start=LOWEST_FLOAT32),
            StateRegister(name=second.name, kind=ValueType.F32, start="0.0"),
        )
        return State(how="softmax", parts=parts, expr=first.expr, results=results)
    parts = tuple(StateRegister(name=f"{name}_shifted", kind=ValueType.F32, start="0.0") for name in results)
    # `second` sums (x − Σx/n)²: take n from the mean inside.
    deviation = second.expr.args[0] if isinstance(second.expr, Apply) else second.expr
    mean = deviation.args[1] if isinstance(deviation, Apply) else deviation
    count = mean.args[1] if isinstance(mean, Apply) else None
    element = Apply("-", (first.expr, Leaf(f"{first.name}_shift", ValueType.F32)), ValueType.F32)
    return State(how="moments", parts=parts, expr=element, results=results, count=count)
