"""Dispatch modes that tell where an integer answer depends on choices that no standard makes."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Conversions(TorchDispatchMode):
    """Dispatch mode that detects conversions of floating-point numbers that the integer type cannot hold."""

    def __init__(self) -> None:
        super().__init__()
        self.undefined = False
        """True once such a conversion was seen."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operation and check a conversion to integers."""
        result = func(*args, **(kwargs or {}))
        source = args[0] if args else None
        if not isinstance(source, torch.Tensor) or func.overloadpacket.__name__ != "_to_copy":
            return result
        if source.is_floating_point() and result.dtype in _INTEGERS:
            limits, whole = torch.iinfo(result.dtype), source.double().trunc()
            # The range is [-2^k, 2^k) or [0, 2^k): its bounds are exact as floats, where 2^63 is no int64.
            # Conversion truncates towards zero first. NaN is in no range.
            inside = (whole >= float(limits.min)) & (whole < float(limits.max) + 1.0)
            self.undefined |= not bool(inside.all())
        return result


class OtherChoices(TorchDispatchMode):
    """Dispatch mode that answers as another right implementation may.

    Of equal elements, `topk` and `sort` take the last one first, where PyTorch leaves the order open. Results
    in float32 below its normal range become zero, as with a GPU's fast functions.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operation, ties the other way round, and flush its results unless they are views."""
        kwargs = kwargs or {}
        place = _PLACE_OF_DIM.get(func)
        if place is not None and args[0].dim():
            dim = args[place] if len(args) > place else kwargs.get("dim", -1)
            values, places = func(args[0].flip(dim), *args[1:], **kwargs)
            return values, args[0].shape[dim] - 1 - places
        result = func(*args, **kwargs)
        if func.is_view:
            return result
        for item in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(item, torch.Tensor) and item.dtype is torch.float32:
                item.masked_fill_(item.abs() < torch.finfo(item.dtype).tiny, 0.0)
        return result


_PLACE_OF_DIM = {torch.ops.aten.topk.default: 2, torch.ops.aten.sort.default: 1}
"""Operations that leave the order of equal elements open, with the position of their argument `dim`."""
_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
"""Integer types into which conversions are checked."""
