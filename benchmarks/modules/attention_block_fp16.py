"""Causal self-attention in float16 with one weight for queries, keys and values, as in GPT."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(1024, 3 * 1024)
        self.out = nn.Linear(1024, 1024)
        self.half()

    def forward(self, x):
        b, t, c = x.shape
        heads = (item.view(b, t, 16, 64).transpose(1, 2) for item in self.qkv(x).split(1024, dim=2))
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


def get_inputs():
    return [torch.randn(8, 1024, 1024, dtype=torch.float16)]


def get_init_inputs():
    return []
