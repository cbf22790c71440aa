"""Constant padding, then ReLU."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return F.relu(F.pad(x, (1, 2, 3, 0), value=0.5))


def get_inputs():
    return [torch.randn(32, 64, 128, 128)]


def get_init_inputs():
    return []
