"""Text for the accuracy of a candidate's outputs, compared with PyTorch's own error."""

from __future__ import annotations

import math
import re

from cutegen_nb.core.evaluation import Correctness, OutputComparison

_ALIKE = 4.0
"""Factor below which two errors count as equal: another order of summation differs by as much."""
_PLAIN = 0.01
"""Smallest error that is written without an exponent."""
SAME, LESS, MORE = "as accurate as PyTorch", "less accurate", "more accurate"


def accuracy_text(correctness: Correctness | None) -> str:
    """Describe the relative errors of the worst output; empty without a comparison."""
    if correctness is None or not correctness.outputs:
        return ""
    worst = max(correctness.outputs, key=_standing)
    of = f"output {worst.index} of {len(correctness.outputs)}: " if len(correctness.outputs) > 1 else ""
    if worst.matches and worst.relative_l2_error == worst.reference_relative_l2_error == 0:
        return f"{of}exact ({SAME})"
    text = f"{of}relative error {exponent(worst.relative_l2_error)}"
    own = f"PyTorch's {exponent(worst.reference_relative_l2_error)}"
    if not worst.matches:
        return f"{text}, where {exponent(worst.tolerance_l2)} is allowed; {own}"
    return f"{text}, {own} ({accuracy_words(worst)})"


def accuracy_words(output: OutputComparison) -> str:
    """Return `SAME`, `LESS` or `MORE`: errors within a factor of 4 of PyTorch's are `SAME`."""
    error, own = output.relative_l2_error, output.reference_relative_l2_error
    if error <= own * _ALIKE and own <= error * _ALIKE:
        return SAME
    return MORE if error < own else LESS


def exponent(value: float) -> str:
    """Format two significant figures: ``0.63``, small ones ``3.8e-4``; ``0`` if exact."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if _PLAIN <= value < 1 / _PLAIN:
        return f"{value:.2g}"
    return re.sub(r"e([+-])0*(\d)", r"e\1\2", f"{value:.1e}").replace("e+", "e")


def _standing(output: OutputComparison) -> tuple[bool, float]:
    """Return the sort key of an output: wrong ones highest, then by the ratio of its error to PyTorch's."""
    error, own = output.relative_l2_error, output.reference_relative_l2_error
    # NaN would not order, so it counts as the largest error.
    if math.isnan(error):
        return not output.matches, math.inf
    return not output.matches, error / own if own else math.inf if error else 0.0
