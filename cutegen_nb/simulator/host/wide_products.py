"""``torch.mm`` and its kin with ``out_dtype``, which PyTorch has for GPUs only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")
"""Functions of torch that take ``out_dtype``."""


def with_out_dtype(product: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a product so that operands are converted to ``out_dtype`` before, where it is given."""

    @functools.wraps(product)
    def multiply(*operands: Any, **options: Any) -> Any:
        placed = [one for one in operands if isinstance(one, torch.dtype)]
        dtype = options.pop("out_dtype", None) or next(iter(placed), None)
        if dtype is None:
            return product(*operands, **options)
        return product(*(one.to(dtype) for one in operands if isinstance(one, torch.Tensor)), **options)

    return multiply
