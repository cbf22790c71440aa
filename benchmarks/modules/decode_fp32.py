"""A linear layer in float32 on eight rows."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4096, 14336)

    def forward(self, x):
        return self.up(x)


def get_inputs():
    return [torch.randn(8, 4096)]


def get_init_inputs():
    return []
