"""Attributes of a gather: the place in the input that each element of the output is read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MapKind = Literal["shift", "step", "reverse", "repeat", "roll", "clamp", "mirror"]
"""Way from a coordinate c of the output to one of the input, with extent m and number k:
shift c - k, inside the input or not; step c * k; reverse m - 1 - c; repeat c // k; roll (c + k) mod m;
clamp c - k limited to 0 … m - 1; mirror c - k reflected at both ends."""


@dataclass(frozen=True, slots=True)
class AxisMap:
    """Coordinate of the input computed from one coordinate of the output."""

    dim: int
    """Dimension of the output."""
    kind: MapKind = "shift"
    """Way from one coordinate to the other."""
    number: int = 0
    """Number k of the way."""
    grown: int = 0
    """Extent of the output less that of the input, for the kinds that add or drop elements."""

    @property
    def same(self) -> bool:
        """True if the coordinate is the output's own."""
        return self.kind == "shift" and self.number == 0 and self.grown == 0

    @property
    def may_miss(self) -> bool:
        """True if the coordinate may lie outside the input, where the padding's value is taken."""
        return self.kind == "shift" and (self.number > 0 or self.grown > self.number)

    def extent(self, of_input: str) -> str:
        """Extent of the output as an expression of the input's."""
        if self.kind == "repeat":
            return f"{of_input} * {self.number}"
        if self.kind == "step":
            return f"({of_input} + {self.number - 1}) // {self.number}"
        if self.grown:
            return f"{of_input} {'+' if self.grown > 0 else '-'} {abs(self.grown)}"
        return of_input

    def coordinate(self, at: str, extent: str) -> str:
        """Coordinate of the input as an expression of the output's, `at`, and of the input's extent."""
        number = self.number
        moved = at if not number else f"{at} {'-' if number > 0 else '+'} {abs(number)}"
        match self.kind:
            case "shift":
                return moved
            case "step":
                return f"{at} * {number}"
            case "reverse":
                return f"{extent} - 1 - {at}"
            case "repeat":
                return f"{at} // {number}"
            case "roll":
                # Made positive first: a remainder has the sign of the dividend.
                return (
                    f"({at} + {number}) % {extent}"
                    if number >= 0
                    else f"({at} + {extent} - {-number}) % {extent}"
                )
            case "clamp":
                return f"cutlass.min(cutlass.max({moved}, 0), {extent} - 1)"
            case "mirror":
                # min(|m'|, 2 (m - 1) - |m'|) with m' = c - k, and |m'| as the greater of m' and -m'.
                away = f"cutlass.max({moved}, {number} - {at})"
                return f"cutlass.min({away}, 2 * {extent} - 2 - {away})"


@dataclass(frozen=True, slots=True)
class IndexedAxis:
    """Coordinate of the input read from a tensor of indices."""

    operand: int
    """Position of the tensor among the operands; the input is operand 0."""
    dims: tuple[int | None, ...]
    """Dimension of the output along each dimension of the tensor; None where its one element serves all."""
    wraps: bool = False
    """True if negative indices count from the end."""


AxisSource = tuple[AxisMap, ...] | IndexedAxis
"""Source of one coordinate of the input: the ways that fit the problem, or indices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather:
    """Places that the elements of the output are read from."""

    sources: tuple[AxisSource, ...]
    """Source of each coordinate of the input."""
    rank: int
    """Number of dimensions of the output."""
    fill: float | int | bool = 0
    """Value of elements outside the input."""
