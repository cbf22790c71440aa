"""The guide's fp16 product by TMA and wgmma against cuBLAS, on a Hopper GPU.

    python benchmarks/hopper_product.py [--out F]

The program is that of ``prompts/guide/12_hopper.md``, with two widths of its tile. They and cuBLAS run in
turns, each call after a write of eight times the L2, which also hides the host's part of the launch. Printed
are the medians of CUDA events and the ratio cuBLAS ÷ ours, above 1 where ours is faster.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from products import TURNS, imported, medians_ms

CHAPTER = Path(__file__).parent.parent / "prompts" / "guide" / "12_hopper.md"
SHAPES = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 4096, 4096),
    (4096, 16384, 1024),
    (2048, 8192, 4096),
)
"""M, N, K; multiples of the tile, which the program's store needs."""
WIDTHS = (128, 256)


def program(width: int, folder: str) -> ModuleType:
    """Import the chapter's program with tiles of 128 × `width`."""
    found = re.search(r"^```python sm_90a\n(.*?)^```", CHAPTER.read_text(), re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"{CHAPTER} has no program for sm_90a")
    source = (
        found[1]
        .partition("\na = torch")[0]
        .replace("TILE_N, TILE_K, STAGES = 128, 128,", f"TILE_N, TILE_K, STAGES = 128, {width},")
    )
    path = Path(folder) / f"product_{width}.py"
    path.write_text(source)
    return imported(path)


def main() -> None:
    """Time every shape and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", help="a JSON file for the numbers")
    options = parser.parse_args()
    import cutlass.cute as cute
    from cutlass.cute.runtime import from_dlpack

    rows = []
    print(f"{torch.cuda.get_device_name()}: fp16 product, fp32 sums; ms at the median of {TURNS}, cold L2")
    with tempfile.TemporaryDirectory() as folder:
        modules = {width: program(width, folder) for width in WIDTHS}
        for m, n, k in SHAPES:
            a = torch.randn(m, k, device="cuda", dtype=torch.float16)
            b = torch.randn(n, k, device="cuda", dtype=torch.float16)
            out = torch.empty(m, n, device="cuda", dtype=torch.float16)
            given = [from_dlpack(t, assumed_align=16) for t in (a, b, out)]
            calls: dict[str, Callable[[], object]] = {"cuBLAS": lambda a=a, b=b: a @ b.t()}
            wanted = a @ b.t()
            for width, module in modules.items():
                compiled = cute.compile(module.product, *given)
                compiled(*given)
                torch.testing.assert_close(out, wanted, rtol=1e-2, atol=1e-1)
                calls[f"128x{width}"] = lambda compiled=compiled, given=given: compiled(*given)
            found = medians_ms(calls)
            best = min(found[f"128x{width}"] for width in WIDTHS)
            tflops = 2 * m * n * k / best / 1e9
            rows.append(
                {"m": m, "n": n, "k": k, "ms": found, "ratio": found["cuBLAS"] / best, "tflops": tflops}
            )
            times = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
            print(
                f"{m:6} {n:6} {k:6}  {times}  ratio {found['cuBLAS'] / best:.2f}  {tflops:.0f} TFLOP/s",
                flush=True,
            )
    mean = statistics.geometric_mean(row["ratio"] for row in rows)
    print(f"geometric mean of the ratios: {mean:.2f}")
    if options.out:
        Path(options.out).write_text(
            json.dumps({"device": torch.cuda.get_device_name(), "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    sys.exit(main())
