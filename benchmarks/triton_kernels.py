"""The peer: the same kernels in Triton, run by Triton's interpreter (TRITON_INTERPRET=1)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=mask)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * columns + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def product_kernel(  # noqa: PLR0913, PLR0917 - pointers, sizes, tiles
    a_ptr, b_ptr, c_ptr, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    depth = tl.arange(0, TILE_K)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + depth[:, None] * N + columns[None, :]
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for _ in range(0, K, TILE_K):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total)
        a_at += TILE_K
        b_at += TILE_K * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.float16))


def relu(x: torch.Tensor) -> torch.Tensor:
    """Element-wise, 1,024 elements a program."""
    y = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y


def softmax(x: torch.Tensor) -> torch.Tensor:
    """One row a program, the row in registers."""
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a @ b` in float16 with float32 sums, 64×64×32 tiles."""
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype)
    grid = (a.shape[0] // 64, b.shape[1] // 64)
    product_kernel[grid](a, b, c, b.shape[1], a.shape[1], TILE_M=64, TILE_N=64, TILE_K=32)
    return c
