"""Padding on two sides, then a convolution with stride."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(32, 64, 3, stride=2)

    def forward(self, x):
        return self.c(F.pad(x, (0, 1, 0, 1)))


def get_inputs():
    return [torch.randn(32, 32, 128, 128)]


def get_init_inputs():
    return []
