"""Causal self-attention in float32 with one weight for queries, keys and values."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(768, 3 * 768)
        self.out = nn.Linear(768, 768)

    def forward(self, x):
        b, t, c = x.shape
        heads = (item.view(b, t, 12, 64).transpose(1, 2) for item in self.qkv(x).split(768, dim=2))
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


def get_inputs():
    return [torch.rand(8, 1024, 768)]


def get_init_inputs():
    return []
