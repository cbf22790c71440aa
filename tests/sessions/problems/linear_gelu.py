"""A linear layer of half-precision numbers and its GELU, in KernelBench's form."""

import torch
from torch import nn


class Model(nn.Module):
    """y = gelu(x · weightᵀ + bias), with the exact (erf) GELU."""

    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features).half()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (rows, in_features) fp16 -> (rows, out_features) fp16."""
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, self.linear.weight, self.linear.bias))


rows = 1024
in_features = 1024
out_features = 1024


def get_inputs():
    return [torch.randn(rows, in_features).half()]


def get_init_inputs():
    return [in_features, out_features]
