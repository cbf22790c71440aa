"""Embeddings of tokens plus positions, then layer norm."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(50257, 768)
        self.pos = nn.Parameter(torch.randn(1, 1024, 768))
        self.norm = nn.LayerNorm(768)

    def forward(self, ids):
        return self.norm(self.tok(ids) + self.pos[:, : ids.shape[1]])


def get_inputs():
    return [torch.randint(0, 50257, (64, 1024))]


def get_init_inputs():
    return []
