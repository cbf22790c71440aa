"""The offline author's attention against PyTorch's, on a Hopper GPU.

    python benchmarks/attention.py [--out F]

16-bit heads: its kernel for Hopper (``attention-wgmma``) and that for any GPU from sm_80 on
(``attention-pipeline``) beside ``scaled_dot_product_attention`` by FlashAttention and by cuDNN. float32: its
``attention-fp16x2`` up to 128 columns, ``attention-products`` for wider heads, beside what PyTorch chooses.
All run in turns, each call after a write of eight times the L2. Printed are the medians of CUDA events, the
TFLOP/s of the two products, the ratios to ours, above 1 where ours is faster, and the relative errors
against float64 on the first head.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from products import imported, medians_ms, write_rows
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from cutegen_nb.authors.offline.operators.attention.strategies import (
    PARTS,
    PIPELINE,
    PRODUCTS,
    TILES,
    WGMMA,
)
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

CASES = (
    *(("float16", 16384 // length, 2048 // head, length, head, causal)
      for head in (64, 128, 256) for length in (1024, 4096, 16384) for causal in (False, True)),
    ("bfloat16", 4, 16, 4096, 128, True),
    ("float16", 4, 16, 4000, 96, True),
    ("float32", 32, 32, 512, 1024, False),
    ("float32", 8, 8, 2048, 512, True),
    ("float32", 8, 16, 2048, 64, True),
    ("float32", 8, 16, 2048, 64, False),
    ("float32", 4, 16, 4096, 128, False),
    ("float32", 16, 12, 1024, 96, True),
    ("float32", 32, 12, 197, 64, False),
)  # fmt: skip
"""dtype, batches, heads, queries and keys, width of a head, causal."""

PROBLEM = """
import torch
import torch.nn.functional as F

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal={causal})

def get_inputs():
    return [torch.randn({shape}, dtype=torch.{dtype}) for _ in range(3)]
"""


def ours(case: tuple[Any, ...], folder: str) -> dict[str, Callable[..., Any]]:
    """Write and import the offline author's kernels for a shape."""
    dtype, *shape, causal = case
    source = PROBLEM.format(dtype=dtype, shape=shape, causal=causal)
    problem = Problem(name="attend", source=source, form=ProblemForm.FUNCTION, function="attend")
    facts = trace_facts(problem)
    offered = {item.name for item in OperatorsWriter().menu(facts)}
    ladders = {"wgmma": (WGMMA,), "fp16x2": (PARTS,), "products": (PRODUCTS,), "mma": (TILES, PIPELINE)}
    found = {}
    for name, steps in ladders.items():
        if steps[-1] in offered:
            path = Path(folder) / f"{name}_{'_'.join(map(str, case))}.py"
            path.write_text(OperatorsWriter().write(problem, facts, steps).source)
            found[name] = imported(path).ModelNew()
    return found


def by(backend: SDPBackend | None, operands: tuple[torch.Tensor, ...], *, causal: bool) -> torch.Tensor:
    """Attend by one of PyTorch's implementations, or by that which it chooses."""
    if backend is None:
        return scaled_dot_product_attention(*operands, is_causal=causal)
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(*operands, is_causal=causal)


def measured(case: tuple[Any, ...], folder: str) -> dict[str, Any]:
    """Time one shape, after the results were compared with float64's."""
    dtype, batches, heads, length, head, causal = case
    shape = (batches, heads, length, head)
    operands = tuple(torch.randn(shape, device="cuda", dtype=getattr(torch, dtype)) for _ in range(3))
    peers: dict[str, SDPBackend | None] = {"PyTorch": None}
    if dtype != "float32":
        peers = {"FlashAttention": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
    calls: dict[str, Callable[[], torch.Tensor]] = {}
    for name, backend in peers.items():
        calls[name] = partial(by, backend, operands, causal=causal)
    for name, model in ours(case, folder).items():
        calls[name] = partial(model, *operands)
    first = tuple(x[:1, :1].double() for x in operands)
    truth = by(SDPBackend.MATH, first, causal=causal)
    errors: dict[str, float] = {}
    for name, call in list(calls.items()):
        try:
            errors[name] = ((call()[:1, :1].double() - truth).norm() / truth.norm()).item()
        except RuntimeError as error:  # PyTorch has no such kernel for the shape
            print(f"{name} does not run {case}: {str(error).splitlines()[0]}")
            del calls[name]
    ms = medians_ms(calls)
    flop = 4 * batches * heads * length**2 * head / (2 if causal else 1)
    mine = next(name for name in ("wgmma", "fp16x2", "products", "mma") if name in ms)
    return {
        "dtype": dtype, "shape": shape, "causal": causal, "ms": ms, "error": errors, "ours": mine,
        "tflops": {name: flop / value / 1e9 for name, value in ms.items()},
        "ratio": {name: ms[name] / ms[mine] for name in ms if name != mine},
    }  # fmt: skip


def line(row: dict[str, Any]) -> str:
    """Return the row as a line of the table."""
    cells = [
        f"{row['dtype']:8} {'x'.join(map(str, row['shape'])):>16} {'causal' if row['causal'] else 'full':6}"
    ]
    for name, ms in row["ms"].items():
        ratio = f" ({row['ratio'][name]:.2f}×)" if name in row["ratio"] else ""
        cells.append(
            f"{name} {ms:.3f} ms{ratio} {row['tflops'][name]:.0f} TFLOP/s error {row['error'][name]:.1e}"
        )
    return "  ".join(cells)


def main() -> None:
    """Time every shape and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", help="a JSON file for the numbers")
    options = parser.parse_args()
    rows = []
    print(f"{torch.cuda.get_device_name()}: medians, cold L2; relative errors against float64")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for case in CASES:
            rows.append(measured(case, folder))
            print(line(rows[-1]), flush=True)
    if options.out:
        write_rows(Path(options.out), rows)


if __name__ == "__main__":
    sys.exit(main())
