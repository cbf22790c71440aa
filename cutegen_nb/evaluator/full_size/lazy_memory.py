"""Dispatch mode under which PyTorch allocates large tensors lazily and computes on small ones only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_nb.evaluator.full_size import tensors

MOST_COMPUTED_BYTES = 256 << 20
"""Most bytes of the operands of one PyTorch operation: more would take seconds and gigabytes."""
_aten = torch.ops.aten
_BLANK = frozenset({
    _aten.empty, _aten.empty_like, _aten.empty_strided, _aten.empty_permuted, _aten.new_empty,
    _aten.new_empty_strided, _aten.zeros, _aten.zeros_like, _aten.new_zeros,
})  # fmt: skip
"""Operations that allocate without values, or zeros: fresh pages of the system are zeros."""
_ALIKE = frozenset({
    _aten.ones, _aten.ones_like, _aten.new_ones, _aten.full, _aten.full_like, _aten.new_full, _aten.rand,
    _aten.rand_like, _aten.randn, _aten.randn_like, _aten.randint, _aten.randint_like,
})  # fmt: skip
"""Operations that allocate elements which are all equal, or independent draws from one distribution."""
_FILLING = frozenset({_aten.zero_, _aten.fill_, _aten.uniform_, _aten.normal_, _aten.random_})
"""In-place operations that replace every element alike; initialisers of parameters use them."""
_WIDEST_BYTES = 8
"""Bytes of an element of the widest dtype."""
_SHAPE_ONLY = frozenset({_aten._unsafe_view, _aten.set_, _aten.resize_})  # noqa: SLF001 - the operation's name
"""Operations that touch no element, though their schemas return no view."""


class ComputedByTorch(Exception):
    """Refusal of a PyTorch operation on tensors of the full size; the message is a sentence."""


class LazyMemory(TorchDispatchMode):
    """Mode for code that is written for tensors larger than this machine's memory.

    A tensor above ``tensors.PATTERN_BYTES`` is virtual: it reads as zeros, or as values that repeat, and
    takes memory where it is written. An operation on more than `MOST_COMPUTED_BYTES` raises ComputedByTorch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused = ""
        """Sentence on the first operation that was refused; empty for none. It stays if the code goes on."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, or stand in for it. Raises ComputedByTorch and MappingFailed."""
        given = kwargs or {}
        packet = func.overloadpacket
        if packet in _BLANK | _ALIKE and "out" not in given:
            made = _allocated(func, args, given)
            if made is not None:
                return made
            if (
                packet in _BLANK
            ):  # of a kernel that writes it only a sample runs: zeros for the next one to read
                return func(*args, **given).zero_()
        elif packet in _FILLING and tensors.is_virtual(args[0]):
            tensors.refill(args[0], _filled(func, args, given))
            return args[0]
        elif packet is _aten.clone and tensors.is_virtual(args[0]):
            form = torch.empty_like(args[0], device="meta", **given)  # its strides: dense, or row-major
            return tensors.alike(args[0], form.stride())
        if packet not in _ALIKE | _BLANK and not _is_view(func):
            self._check_size(func, args, given)
        return func(*args, **given)

    def _check_size(self, func: Any, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        operands = [item for item in pytree.tree_leaves((args, given)) if isinstance(item, torch.Tensor)]
        size = sum(item.numel() * item.element_size() for item in operands)
        if size <= MOST_COMPUTED_BYTES:
            return
        message = (
            f"At full size the candidate has PyTorch run {func.overloadpacket} on {size / 2**30:.2f} GiB. A "
            f"sample at full size runs PyTorch on {MOST_COMPUTED_BYTES >> 20} MiB at most; only "
            "kernels are sampled."
        )
        self.refused = self.refused or message
        raise ComputedByTorch(message)


def _allocated(func: Any, args: tuple[Any, ...], given: dict[str, Any]) -> torch.Tensor | None:
    """Return a virtual tensor in place of a fresh one; None for a small one or an unusual layout."""
    if func.overloadpacket in _ALIKE:
        return _repeated(func, args, dict(given))
    form = func(*args, **(given | {"device": torch.device("meta")}))
    if form.layout is not torch.strided or form.untyped_storage().nbytes() <= tensors.PATTERN_BYTES:
        return None
    return tensors.zeros(form.shape, form.stride(), form.dtype)


def _repeated(func: Any, args: tuple[Any, ...], given: dict[str, Any]) -> torch.Tensor | None:
    """Run an allocating operation for a vector and repeat that; None where its own shape is small."""
    names = [argument.name for argument in func._schema.arguments]  # noqa: SLF001 - there is no public way
    like = "size" not in names
    # By `empty`, which takes no generator: none has the device "meta".
    form = (
        torch.empty_like(args[0], device="meta", memory_format=given.pop("memory_format", None))
        if like
        else torch.empty(args[names.index("size")], device="meta")
    )
    if form.layout is not torch.strided or form.numel() * _WIDEST_BYTES <= tensors.PATTERN_BYTES:
        return None
    changed = list(args)
    if like:
        changed[0] = torch.empty(tensors.DRAWN, dtype=args[0].dtype)
    else:
        changed[names.index("size")] = [tensors.DRAWN]
    values = func(*changed, **given)
    return tensors.repeating(form.shape, form.stride(), values.dtype, values)


def _filled(func: Any, args: tuple[Any, ...], given: dict[str, Any]) -> torch.Tensor:
    """Run an in-place operation on a vector; return the vector, whose values the target repeats."""
    target, *others = args
    small = torch.empty(tensors.DRAWN, dtype=target.dtype)
    func(small, *others, **given)
    return small


def _is_view(func: Callable[..., Any]) -> bool:
    """Return whether an operation returns a view of an operand, or changes shape and strides only."""
    if func.overloadpacket in _SHAPE_ONLY or torch.Tag.inplace_view in func.tags:  # type: ignore[attr-defined]  # an OpOverload
        return True
    returned = func._schema.returns  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public way
    return any(item.alias_info is not None and not item.alias_info.is_write for item in returned)
