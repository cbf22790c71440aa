"""Host reads of a candidate's inputs during ``forward``.

On a GPU they show as copies that PyTorch makes (`dispatch_watch`). On the simulator tensors lie in CPU memory
and ``x.numpy()`` copies nothing, so the reading functions themselves are watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from cutegen_nb.evaluator.observe.provenance import Provenance, address_of
from cutegen_nb.evaluator.observe.read_sources import FROM_NOTHING

_Read = Callable[[torch.Tensor], None]
_AS_ARRAY = frozenset({torch.Tensor.numpy, torch.Tensor.__array__})
"""Functions that hand a tensor to NumPy."""
_READING = _AS_ARRAY | {torch.Tensor.tolist}
"""Functions that read a tensor on the host without an ATen copy."""


class InputStorages:
    """Storages that hold input values or values that PyTorch derived from them, by address."""

    def __init__(self, given: Iterable[torch.Tensor], provenance: Provenance) -> None:
        self._given = frozenset(map(address_of, given))
        self._made = set(self._given)
        self._provenance = provenance

    def passed_on(self, name: str, given: Any, result: Any) -> None:
        """Follow the results of an operation on followed tensors; stop following those of any other."""
        made = name not in FROM_NOTHING and any(self.holds(item) for item in _tensors(given))
        for item in _tensors(result):
            (self._made.add if made else self._made.discard)(address_of(item))

    def brought_down(self, tensor: torch.Tensor) -> None:
        """Stop following a host copy, which was counted when it was made. An input stays followed."""
        self._made -= {address_of(tensor)} - self._given

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is an input or was derived from one by PyTorch."""
        return address_of(tensor) in self._made

    def on_device(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor would certainly lie on a GPU: an input, or memory that a kernel wrote."""
        address = address_of(tensor)
        return address in self._given or address in self._provenance.written


class HostReads(TorchFunctionMode):
    """Mode that reports host reads and refuses NumPy a tensor that would lie on a GPU, as PyTorch does."""

    def __init__(self, followed: InputStorages, read: _Read) -> None:
        super().__init__()
        self._followed = followed
        self._read = read

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the function and report it where it reads on the host. Raises TypeError, as PyTorch does."""
        kwargs = kwargs or {}
        subject = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if subject is None or not (func in _READING or _to_host(func, args, kwargs)):
            return func(*args, **kwargs)
        if func in _AS_ARRAY and self._followed.on_device(subject):
            message = (
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                "host memory first."
            )
            raise TypeError(message)
        if self._followed.holds(subject):
            self._read(subject)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            self._followed.brought_down(result)
        return result


def _to_host(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if func is torch.Tensor.cpu:
        return True
    return func is torch.Tensor.to and any(str(one) == "cpu" for one in (*args[1:2], kwargs.get("device")))


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if type(leaf) in {torch.Tensor, torch.nn.Parameter}]
