"""Attributes of a sliding window: extents, steps, and how its elements are reduced."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["max", "avg", "conv"]
"""Reduction of a window: the greatest element, the mean, or the sum of products with weights."""


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """Windows along one axis. The first begins `padding` elements before the input."""

    window: int = 1
    """Taps of a window."""
    stride: int = 1
    """Elements from one window to the next."""
    padding: int = 0
    """Elements added on both sides, which are neutral to the reduction."""
    dilation: int = 1
    """Elements from one tap to the next."""

    @property
    def span(self) -> int:
        """Elements from the first tap to the last, both included."""
        return (self.window - 1) * self.dilation + 1

    @property
    def text(self) -> str:
        """Tuple in the order of the fields."""
        return f"({self.window}, {self.stride}, {self.padding}, {self.dilation})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Windows of an operator over one, two or three dimensions."""

    kind: Kind
    """Reduction."""
    spatial: int
    """Spatial dimensions of the tensors: their last ones."""
    axes: tuple[WindowAxis, WindowAxis, WindowAxis] = (WindowAxis(), WindowAxis(), WindowAxis())
    """Windows along depth, height and width, which are the last three dimensions."""
    rank: int = 3
    """Spatial dimensions that have an extent: at most `spatial`."""
    ceil: bool = False
    """True if the last window may reach past the padded input."""
    include_pad: bool = True
    """True if the divisor of a mean counts padding."""
    divisor: int = 0
    """Divisor given by the caller; 0 if it is the number of elements."""
    adaptive: tuple[int | str, ...] = ()
    """Outputs along each spatial dimension, where windows follow from them; as text where they depend on the
    input's extents."""
    bias: bool = False
    """True if a bias is added to each channel."""

    @property
    def taps(self) -> int:
        """Elements of a whole window."""
        return math.prod(axis.window for axis in self.axes)

    @property
    def counts_rim(self) -> bool:
        """True if the divisor of a mean differs from window to window."""
        padded = not self.include_pad and any(axis.padding for axis in self.axes)
        return self.kind == "avg" and not self.divisor and not self.adaptive and (self.ceil or padded)
