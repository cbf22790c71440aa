"""A linear layer in float16 with SiLU, on the 16 rows that a language model decodes together."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4096, 14336, bias=False, dtype=torch.float16)

    def forward(self, x):
        return F.silu(self.gate(x))


def get_inputs():
    return [torch.randn(16, 4096, dtype=torch.float16)]


def get_init_inputs():
    return []
