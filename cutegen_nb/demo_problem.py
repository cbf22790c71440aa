# mypy: disable-error-code="misc, no-any-return"
"""Problem of `cutegen-nb demo`, in KernelBench's form. The parent process reads this file as text."""

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
        """Map (batch, features) to the same shape."""
        return F.gelu(x) * self.scale + self.shift


def get_inputs() -> list[torch.Tensor]:
    """Return one input of shape (batch, features), normally distributed."""
    return [torch.randn(batch_size, features)]


def get_init_inputs() -> list[int]:
    """Return the arguments of Model."""
    return [features]
