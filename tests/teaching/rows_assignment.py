"""The shipped assignment with its solutions, and notebooks to hand in."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "notebooks" / "assignments" / "rows"
TOML = FOLDER / "rows.toml"
CELLS = [
    "".join(cell["source"])
    for cell in json.loads((FOLDER / "rows.ipynb").read_text(encoding="utf-8"))["cells"]
]
SOLUTIONS = {
    head.split()[2]: source.replace("### BEGIN SOLUTION\n", "").replace("### END SOLUTION", "")
    for head, _, source in (cell.partition("\n") for cell in CELLS)
    if head.startswith("%%cutegen check")
}
A_ROW_A_THREAD = """import cutlass
import cutlass.cute as cute


@cute.kernel
def sum_kernel(x: cute.Tensor, out: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    row = bidx * 128 + tidx
    total = cutlass.Float32(0.0)
    if row < x.shape[0]:
        for column in cutlass.range(x.shape[1]):
            total += x[row, column]
        out[row] = total


@cute.jit
def launch(x: cute.Tensor, out: cute.Tensor):
    sum_kernel(x, out).launch(grid=((x.shape[0] + 127) // 128, 1, 1), block=(128, 1, 1))
"""
"""Right and slow answer to rows/2."""


def notebook(*cells: str) -> str:
    """Text of a notebook with these code cells."""
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


def answer(name: str, source: str) -> str:
    """Cell that answers an exercise."""
    return f"%%cutegen check {name}\n{source}"
