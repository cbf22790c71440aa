"""An embedding: rows of a table by index."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, indices):
        return self.table(indices)


def get_inputs():
    return [torch.randint(0, 32000, (8, 2048))]


def get_init_inputs():
    return [32000, 1024]
