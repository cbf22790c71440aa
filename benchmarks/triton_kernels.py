"""The peer: the same functions in Triton at its usual tiles, for its interpreter (TRITON_INTERPRET=1)."""

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


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    tl.store(y_ptr + row * columns + offsets, centred / tl.sqrt(variance + 1e-5), mask=mask)


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + row * columns + offsets, tl.cumsum(x, axis=0), mask=mask)


@triton.jit
def argmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=-float("inf"))
    tl.store(y_ptr + row, tl.argmax(x, axis=0).to(tl.int64))


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, columns, TILE: tl.constexpr):
    down = tl.program_id(0) * TILE + tl.arange(0, TILE)
    across = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + down[:, None] * columns + across[None, :])
    tl.store(y_ptr + across[:, None] * rows + down[None, :], tl.trans(x))


@triton.jit
def attention_kernel(  # noqa: PLR0913, PLR0917 - pointers, sizes, tiles
    q_ptr, k_ptr, v_ptr, out_ptr, scale, keys, HEAD: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    within = tl.arange(0, HEAD)
    columns = tl.arange(0, TILE_N)
    q = tl.load(q_ptr + rows[:, None] * HEAD + within[None, :])
    high = tl.full((TILE_M,), -float("inf"), tl.float32)
    total = tl.zeros((TILE_M,), tl.float32)
    sums = tl.zeros((TILE_M, HEAD), tl.float32)
    for first in range(0, keys, TILE_N):
        at = (first + columns)[:, None] * HEAD + within[None, :]
        scores = tl.dot(q, tl.trans(tl.load(k_ptr + at))) * scale
        new_high = tl.maximum(high, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_high[:, None])
        shrink = tl.exp(high - new_high)
        total = total * shrink + tl.sum(weights, axis=1)
        sums = tl.dot(weights.to(tl.float16), tl.load(v_ptr + at), sums * shrink[:, None])
        high = new_high
    out = (sums / total[:, None]).to(tl.float16)
    tl.store(out_ptr + rows[:, None] * HEAD + within[None, :], out)


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


def product(a: torch.Tensor, b: torch.Tensor, tiles: tuple[int, int, int] = (64, 64, 32)) -> torch.Tensor:
    """`a @ b` in float16 with float32 sums; `tiles` of M, N, K."""
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype)
    m, n, k = tiles
    grid = (a.shape[0] // m, b.shape[1] // n)
    product_kernel[grid](a, b, c, b.shape[1], a.shape[1], TILE_M=m, TILE_N=n, TILE_K=k)
    return c


def wide_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product with tiles of 128×128×64, as people choose them on a GPU."""
    return product(a, b, (128, 128, 64))


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    """One row a program, the row in registers."""
    y = torch.empty_like(x)
    layer_norm_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def cumsum(x: torch.Tensor) -> torch.Tensor:
    """One row a program, the row in registers."""
    y = torch.empty_like(x)
    cumsum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def argmax(x: torch.Tensor) -> torch.Tensor:
    """One row a program, the row in registers."""
    y = torch.empty(x.shape[0], dtype=torch.int64)
    argmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Tiles of 32×32."""
    y = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype)
    transpose_kernel[(x.shape[0] // 32, x.shape[1] // 32)](x, y, *x.shape, TILE=32)
    return y


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Online softmax of a head, tiles of 128 queries × 64 keys."""
    out = torch.empty_like(q)
    head = q.shape[-1]
    attention_kernel[(q.shape[-2] // 128,)](
        q, k, v, out, head**-0.5, k.shape[-2], HEAD=head, TILE_M=128, TILE_N=64
    )
    return out
