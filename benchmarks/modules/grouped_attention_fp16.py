"""Causal attention in float16, four queries a head of keys."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def get_inputs():
    return [
        torch.rand(2, 16, 1024, 64, dtype=torch.float16),
        torch.rand(2, 4, 1024, 64, dtype=torch.float16),
        torch.rand(2, 4, 1024, 64, dtype=torch.float16),
    ]


def get_init_inputs():
    return []
