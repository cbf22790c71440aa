"""What this very GPU can do: its copy bandwidth, and the dense products of PyTorch's libraries by type.

A data sheet promises more than any program gets; a time is held against what was measured. Measured once a
device, driver and version of torch, and kept in the person's cache folder under the device's UUID.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

from cutegen_nb.gpu.sampling import timed

_SIDE = 8192
"""Of the square products: large enough that launching and tails are under a per cent."""
_FP64_SIDE = 4096
_RUNS = 5
_COPIES = 8


def copy_bandwidth() -> float:
    """Bytes/s, read and written, of a device copy of up to 1 GiB: the roof that times are held against."""
    free, _ = torch.cuda.mem_get_info()
    size = int(min(1 << 30, free // 8))
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * size / (_median_ms(lambda: target.copy_(source), _COPIES) * 1e-3)


def peak_flops() -> dict[str, float]:
    """FLOP/s of a dense product by ``pipe.type``, for the types this GPU and this torch can multiply."""
    found = {
        "tensor.f16": _product(torch.float16, _SIDE),
        "tensor.bf16": _product(torch.bfloat16, _SIDE),
        "tensor.tf32": _product(torch.float32, _SIDE, tf32=True),
        "cuda.f32": _product(torch.float32, _SIDE // 2, tf32=False),
        "tensor.f64": _product(torch.float64, _FP64_SIDE // 2),
    }
    return {name: value for name, value in found.items() if value}


def _product(dtype: torch.dtype, side: int, *, tf32: bool = False) -> float:
    """FLOP/s of a square product; 0 where it cannot be had: memory too small, type unknown here."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        a = torch.randn(side, side, device="cuda").to(dtype)
        b = torch.randn(side, side, device="cuda").to(dtype)
        return 2 * side**3 / (_median_ms(lambda: a @ b, _RUNS) * 1e-3)
    except RuntimeError:
        return 0.0
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _median_ms(call: Callable[[], object], runs: int) -> float:
    times = [timed(call) for _ in range(runs + 2)]
    return statistics.median(times[2:])
