# mypy: disable-error-code="misc, no-any-return"
"""SwiGLU of a joined projection, in KernelBench's form."""

from __future__ import annotations

import torch
import torch.nn.functional as F

batch_size = 128
hidden = 11008


class Model(torch.nn.Module):
    """The first half of a row gates the second: silu(x1) * x2."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (batch, 2 * hidden) in, (batch, hidden) out."""
        x1, x2 = x.chunk(2, dim=-1)
        return F.silu(x1) * x2


def get_inputs() -> list[torch.Tensor]:
    """One input, normally distributed."""
    return [torch.randn(batch_size, 2 * hidden)]


def get_init_inputs() -> list[int]:
    """Model takes no arguments."""
    return []
