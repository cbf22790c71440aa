"""Small tensors kept real under fake ones, for a problem that reads values while its model is constructed.

The Swin transformers of KernelBench take their rates from ``torch.linspace(…)`` with ``item()``. A fake
tensor has no values. To construct the whole model of real tensors would take as much memory as its weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_MOST_ELEMENTS = 2**16
"""Elements of the largest tensor that is made real."""


class SmallTensorsReal(TorchDispatchMode):
    """Dispatch mode, inside a fake one, under which tensors of few elements are real.

    An operation on real tensors alone is run, one that meets a fake tensor is left to the fake mode.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation on real tensors, or under the fake mode."""
        keywords = kwargs or {}
        given = _tensors((args, keywords))
        if any(isinstance(tensor, FakeTensor) for tensor in given):
            return func(*args, **keywords)
        if not given:
            made = func(*args, **keywords)
            if any(tensor.numel() > _MOST_ELEMENTS for tensor in _tensors(made)):
                return made
        with unset_fake_temporarily():
            return func(*args, **keywords)


def faked(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """Return a fake tensor like `tensor`, or `tensor` if it is one."""
    return tensor if isinstance(tensor, FakeTensor) else mode.from_tensor(tensor)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
