"""Measured ceilings of this GPU: copy bandwidth, and FLOP/s of dense products of PyTorch's libraries by type.

A data sheet promises more than any program reaches, so times are compared with measured ceilings. They are
measured once per device, driver and version of torch, and kept in the user's cache folder under the device's
UUID (`stored_ceilings`). Each timing measures the copy bandwidth anew.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from cutegen_nb.evaluator.timing.bench import sampled

_SIDE = 8192
"""Side of the square float16, bfloat16 and TF32 products, at which launch and tail take under 1 %."""
_FP64_SIDE = 4096
"""Twice the side of the float64 product."""
_RUNS = 5
"""Timed products behind a median."""
_COPIES = 8
"""Timed copies behind a median."""


def copy_bandwidth() -> float:
    """Measure the bandwidth of a device copy of up to 1 GiB, in bytes/s read and written together."""
    free, _ = torch.cuda.mem_get_info()
    size = int(min(1 << 30, free // 8))
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    # A copy reads and writes each byte once.
    return 2 * size / (_median_ms(lambda: target.copy_(source), _COPIES) * 1e-3)


def peak_flops() -> dict[str, float]:
    """Measure the FLOP/s of a dense product by ``pipe.type``, for each type that can be multiplied here."""
    found = {
        "tensor.f16": _product(torch.float16, _SIDE),
        "tensor.bf16": _product(torch.bfloat16, _SIDE),
        "tensor.tf32": _product(torch.float32, _SIDE, tf32=True),
        "cuda.f32": _product(torch.float32, _SIDE // 2, tf32=False),
        "tensor.f64": _product(torch.float64, _FP64_SIDE // 2),
    }
    return {name: value for name, value in found.items() if value}


def _product(dtype: torch.dtype, side: int, *, tf32: bool = False) -> float:
    """Measure the FLOP/s of a square product; 0 where memory is too small or the type is unknown here."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        a = torch.randn(side, side, device="cuda").to(dtype)
        b = torch.randn(side, side, device="cuda").to(dtype)
        # side³ multiply-adds, each counted as two operations.
        return 2 * side**3 / (_median_ms(lambda: a @ b, _RUNS) * 1e-3)
    except RuntimeError:
        return 0.0
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _median_ms(call: Callable[[], object], runs: int) -> float:
    times = [sampled(call).ms for _ in range(runs + 2)]  # the first two warm up
    return statistics.median(times[2:])
