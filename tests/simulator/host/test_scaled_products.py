"""``torch._scaled_mm`` with scales of blocks, which PyTorch has for GPUs only."""

import pytest
import torch

from cutegen_nb.simulator.host.scaled_products import with_block_scales


def blocked(scales):
    """Scales (rows, along K) in tiles of 128 × 4, row r at [r mod 32, r div 32]."""
    rows, along = scales.shape
    tiles = scales.view(rows // 128, 128, along // 4, 4).permute(0, 2, 1, 3)
    return tiles.reshape(-1, 4, 32, 4).transpose(1, 2).reshape(-1, 32, 16).flatten()


@pytest.mark.parametrize(("scale", "block"), [(torch.float8_e8m0fnu, 32), (torch.float8_e4m3fn, 16)])
@pytest.mark.parametrize("four_bits", [False, True])
def test_blocks_are_scaled(scale, block, four_bits):
    torch.manual_seed(1)
    m, n, k = 128, 256, 256
    numbers = [torch.tensor([0, 0.5, 1, -2.0])[torch.randint(0, 4, (rows, k))] for rows in (m, n)]
    scales = [(2.0 ** torch.randint(-2, 3, (rows, k // block))).to(scale) for rows in (m, n)]
    codes = {0.0: 0, 0.5: 1, 1.0: 2, -2.0: 12}
    if four_bits:
        each = [torch.tensor([[codes[x] for x in row] for row in one.tolist()]) for one in numbers]
        a, b = (
            (one[:, ::2] | one[:, 1::2] << 4).to(torch.uint8).view(torch.float4_e2m1fn_x2) for one in each
        )
    else:
        a, b = (one.to(torch.float8_e4m3fn) for one in numbers)
    multiply = with_block_scales(torch._scaled_mm)
    found = multiply(a, b.t(), blocked(scales[0]), blocked(scales[1]), out_dtype=torch.float32)
    left, right = (
        one * each.float().repeat_interleave(block, dim=1) for one, each in zip(numbers, scales, strict=True)
    )
    assert torch.equal(found, left @ right.t())


def test_other_scales_go_to_pytorch():
    asked = []
    with_block_scales(lambda *given, **_: asked.append(given))(1, 2, torch.ones(1), torch.ones(1))
    assert len(asked) == 1
