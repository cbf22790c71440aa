"""Attention in float16 of a decoder to the memory of an encoder."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(1024, 1024)
        self.both = nn.Linear(1024, 2 * 1024)
        self.out = nn.Linear(1024, 1024)
        self.half()

    def forward(self, x, memory):
        b, t, c = x.shape
        q = self.query(x).view(b, t, 16, 64).transpose(1, 2)
        k, v = self.both(memory).view(b, -1, 2, 16, 64).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


def get_inputs():
    return [torch.randn(8, 512, 1024, dtype=torch.float16), torch.randn(8, 1024, 1024, dtype=torch.float16)]


def get_init_inputs():
    return []
