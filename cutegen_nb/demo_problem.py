# mypy: disable-error-code="misc, no-any-return"
"""What `cutegen-nb demo` refines, in KernelBench's form. The parent reads this file as text."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own habit

batch_size = 509
features = 1536


class Model(torch.nn.Module):
    """GELU, then a scale and a shift for each feature."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(features))
        self.shift = torch.nn.Parameter(torch.rand(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (batch, features) in and out."""
        return F.gelu(x) * self.scale + self.shift


def get_inputs() -> list[torch.Tensor]:
    """One input, normally distributed."""
    return [torch.randn(batch_size, features)]


def get_init_inputs() -> list[int]:
    """Arguments of Model."""
    return [features]
