"""The offline author's matrix products on tensor cores against cuBLAS, on a Hopper GPU.

    python benchmarks/products.py [--dtypes float32,float16,bfloat16] [--only-weights] [--out F]

Two of its kernels: ``mma``, the last that it writes for any GPU from sm_80 on (``multistage-copies``), and
``wgmma``, that for Hopper (``three-fp16-products`` for float32, ``tma-wgmma`` for 16 bits); where tiles are
few also ``split``, ``mma`` with ``split-k``. For 2 to 32 rows there is ``few``, ``weights-to-registers``;
for 64 to 256 rows of float32 and large weights ``registers``, ``split-in-registers``: `--only-weights` times
no others. They and ``torch.matmul``, without TF32, run in turns, each call after a write of eight times the
L2; the host's part of a launch is hidden. Printed are the medians of CUDA events, the ratios cuBLAS ÷ ours,
above 1 where ours is faster, and the relative errors against a product in float64.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from cutegen_nb.authors.offline.matmul.strategies import (
    FEW_ROWS,
    MULTISTAGE,
    SPLIT,
    SPLIT_IN_REGISTERS,
    TENSOR,
    THREE_PRODUCTS,
    WGMMA,
)
from cutegen_nb.authors.offline.matmul.writer import MatmulWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SHAPES = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 4096, 4096),
    (4096, 16384, 1024),
    (2048, 8192, 4096),
    (1000, 3000, 2000),
    (4097, 4095, 4093),
)
"""M, N, K."""
FEW_TILES = ((128, 4096, 4096), (256, 8192, 8192), (1024, 1024, 4096))
"""M, N, K of deep products with few tiles, for which ``split`` is timed too."""
FEW = ((2, 14336, 4096), (16, 14336, 4096), (16, 4096, 4096), (32, 14336, 4096))
"""M, N, K of the linear layers of a language model that decodes, whose weights lie transposed."""
WEIGHTS = (
    (128, 32768, 32768),
    (128, 16384, 16384),
    (64, 16384, 16384),
    (256, 16384, 8192),
    (128, 8192, 8192),
)
"""M, N, K of float32 layers whose weights meet few rows, transposed too."""
TRANSPOSED = (("A", "B"), ("A.T", "B"), ("A", "B.T"), ("A.T", "B.T"))
"""Operands as they lie in memory; all four at 4096³, as given at the other shapes."""
TURNS = 15

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, A, B):
        return {left} @ {right}
def get_inputs():
    return [torch.randn({a}, dtype=torch.{dtype}), torch.randn({b}, dtype=torch.{dtype})]
def get_init_inputs():
    return []
"""


def kernel(
    steps: tuple[str, ...],
    operands: tuple[str, str],
    dtype: str,
    folder: str,
    shapes: tuple[str, str] = ("256, 256", "256, 256"),
) -> ModuleType:
    """Write and import the offline author's kernel; but for those of few rows, a file serves every shape."""
    left, right = operands
    source = PROBLEM.format(left=left, right=right, a=shapes[0], b=shapes[1], dtype=dtype)
    problem = Problem(name="product", source=source, form=ProblemForm.KERNELBENCH)
    written = MatmulWriter().write(problem, trace_facts(problem), steps).source
    name = "_".join(("product", steps[-1], dtype, *operands, *shapes)).replace(".T", "t").replace(", ", "x")
    path = Path(folder) / f"{name}.py"
    path.write_text(written)
    return imported(path)


def imported(path: Path) -> ModuleType:
    """Import a file by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernels(operands: tuple[str, str], dtype: str, folder: str) -> dict[str, ModuleType]:
    """Return the kernels by the names of the table."""
    steps = {
        "mma": (TENSOR, MULTISTAGE),
        "wgmma": (THREE_PRODUCTS if dtype == "float32" else WGMMA,),
    }
    return {name: kernel(taken, operands, dtype, folder) for name, taken in steps.items()}


def medians_ms(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Time the calls in turns, with a cold L2."""
    flush = torch.empty(8 * 50 * 2**20 // 4, dtype=torch.float32, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(TURNS + 2):
        for name, call in calls.items():
            torch.cuda._sleep(2_000_000)  # noqa: SLF001 - a millisecond that hides the host's part of a call
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            end.synchronize()
            if turn >= 2:  # the first turns warm up
                times[name].append(start.elapsed_time(end))
    return {name: statistics.median(found) for name, found in times.items()}


def measured(
    modules: dict[str, ModuleType], operands: tuple[str, str], dtype: str, size: tuple[int, int, int]
) -> dict[str, Any]:
    """Time one shape, after the results were compared with float64's."""
    (m, n, k), (left, right) = size, operands
    a = torch.randn((k, m) if left == "A.T" else (m, k), device="cuda", dtype=getattr(torch, dtype))
    b = torch.randn((n, k) if right == "B.T" else (k, n), device="cuda", dtype=getattr(torch, dtype))
    x, y = (a.T if left == "A.T" else a), (b.T if right == "B.T" else b)
    calls: dict[str, Callable[[], torch.Tensor]] = {"cuBLAS": lambda: x @ y}
    for name, module in modules.items():
        calls[name] = partial(module.ModelNew(), a, b)
    truth = x.double() @ y.double()
    errors = {name: ((call().double() - truth).norm() / truth.norm()).item() for name, call in calls.items()}
    del truth
    ms = medians_ms(calls)
    return {
        "dtype": dtype, "left": left, "right": right, "m": m, "n": n, "k": k, "ms": ms, "error": errors,
        "ratio": {name: ms["cuBLAS"] / ms[name] for name in modules},
    }  # fmt: skip


def weights(folder: str) -> list[dict[str, Any]]:
    """Time the float32 layers of few rows, and print their lines."""
    rows = []
    modules = kernels(("A", "B.T"), "float32", folder)
    for m, n, k in WEIGHTS:
        shapes = (f"{m}, {k}", f"{n}, {k}")
        steps = (THREE_PRODUCTS, SPLIT_IN_REGISTERS)
        registers = kernel(steps, ("A", "B.T"), "float32", folder, shapes)
        given = {"wgmma": modules["wgmma"], "registers": registers}
        rows.append(measured(given, ("A", "B.T"), "float32", (m, n, k)))
        print(line(rows[-1]), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """Return the row as a line of the table."""
    cells = [f"{row['dtype']:8} {row['left']:3} {row['right']:3} {row['m']:5} {row['n']:5} {row['k']:5}"]
    for name, ms in row["ms"].items():
        ratio = f" {row['ratio'][name]:.2f}×" if name in row["ratio"] else ""
        cells.append(f"{name} {ms:.4f} ms{ratio} error {row['error'][name]:.1e}")
    return "  ".join(cells)


def main() -> None:
    """Time every shape and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtypes", default="float32,float16,bfloat16")
    parser.add_argument("--only-weights", action="store_true", help="float32 layers of few rows alone")
    parser.add_argument("--out", help="a JSON file for the numbers")
    options = parser.parse_args()
    rows = []
    print(f"{torch.cuda.get_device_name()}: medians of {TURNS}, cold L2; relative errors against float64")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for dtype in () if options.only_weights else options.dtypes.split(","):
            for operands in TRANSPOSED:
                modules = kernels(operands, dtype, folder)
                for size in SHAPES if operands == ("A", "B") else SHAPES[3:4]:
                    rows.append(measured(modules, operands, dtype, size))
                    print(line(rows[-1]), flush=True)
            modules = kernels(("A", "B"), dtype, folder)
            split = kernel((TENSOR, MULTISTAGE, SPLIT), ("A", "B"), dtype, folder)
            for size in FEW_TILES:
                rows.append(measured({**modules, "split": split}, ("A", "B"), dtype, size))
                print(line(rows[-1]), flush=True)
            for m, n, k in (size for size in FEW if dtype != "float32" or size[0] <= 16):
                few = kernel((FEW_ROWS,), ("A", "B.T"), dtype, folder, (f"{m}, {k}", f"{n}, {k}"))
                rows.append(measured({"few": few}, ("A", "B.T"), dtype, (m, n, k)))
                print(line(rows[-1]), flush=True)
            for name in modules:
                mean = statistics.geometric_mean(
                    row["ratio"][name] for row in rows if row["dtype"] == dtype and name in row["ratio"]
                )
                print(f"{dtype}, {name}: {mean:.2f}× cuBLAS in the geometric mean")
        rows += weights(folder) if "float32" in options.dtypes else []
    if options.out:
        write_rows(Path(options.out), rows)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the numbers as JSON, with device, driver, versions and date."""
    found = {
        "device": torch.cuda.get_device_name(),
        "driver": driver(),
        "versions": {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "nvidia-cutlass-dsl": version("nvidia-cutlass-dsl"),
        },
        "date": datetime.now(UTC).date().isoformat(),
        "rows": rows,
    }
    path.write_text(json.dumps(found, indent=1) + "\n")


def driver() -> str:
    """Return the driver's version, or an empty text."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
