"""Hints on refusals of the compiler that beginners meet."""

from __future__ import annotations

_HINTS = {
    "weakly congruent": (
        "The index does not fit the tensor: a matrix takes x[row, column], and x[(None, i)] is for a tensor "
        "that cute.zipped_divide made."
    ),
    "leaves are integers or None": "An index is an integer: / makes a float, // makes none.",
    "'_Tensor'": (
        "An operation takes numbers: write x[i], or x[(None, i)].load() for a vector. Sizes are in x.shape."
    ),
    "Early exit (return)": "Put the other statements below the opposite condition, such as `if i < n:`.",
    "Early exit (": "Put the end into the condition of the loop, or the statements below an `if`.",
    "on one path and": (
        "Give the first value the same type, such as cutlass.Float32(0.0) for a sum of float32 numbers."
    ),
}
"""Hint by words of the compiler's message; the first that fits counts."""


def compile_hint(message: str) -> str:
    """Return a sentence on the next step after a message of the compiler; empty where there is none."""
    return next((hint for words, hint in _HINTS.items() if words in message), "")
