import torch
from torch import nn


class Model(nn.Module):
    """Softmax of each row over the elements that are not masked."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns) fp32; mask: (rows, columns) bool, True where left out."""
        return torch.softmax(x.masked_fill(mask, float("-inf")), dim=-1)


rows = 2048
columns = 1024


def get_inputs() -> list[torch.Tensor]:
    x = torch.randn(rows, columns)
    mask = torch.rand(rows, columns) < 0.3
    mask[:, 0] = False
    return [x, mask]


def get_init_inputs() -> list[object]:
    return []
