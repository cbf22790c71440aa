"""Softmax of scores masked by `tril`."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, scores):
        length = scores.shape[-1]
        mask = torch.ones(length, length, device=scores.device, dtype=torch.bool).tril()
        return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)


def get_inputs():
    return [torch.randn(16, 16, 1024, 1024)]


def get_init_inputs():
    return []
