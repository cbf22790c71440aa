"""Guard bands: known bytes around the buffers that a candidate is given or allocates through PyTorch.

On a GPU a write past the end of a buffer lands in the allocator's rounding or in another buffer and raises
nothing. Here each buffer is a view into a larger one, with a band before it and one after it. The bands are
checked after each call. They hold NaNs, so that a read beyond a buffer shows in the values. Strides,
contiguity and an alignment of 256 bytes stay as they were.

Buffers that are empty or not dense and those that ``__init__`` allocated have no bands. The simulator needs
none: it checks each address.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

BAND_BYTES = 1 << 16
"""Bytes of each band (64 KiB); a multiple of every alignment that a kernel may count on."""
_BAND_BYTE = 0xFF
"""Byte that fills the bands: a NaN in every floating-point type, and not the NaN that arithmetic makes."""
UNINITIALISED = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
"""Operations that return memory to which nothing was written."""
_FILLED = frozenset({
    "full", "full_like", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "zeros", "zeros_like",
})  # fmt: skip
_COPIED = frozenset({"clone", "_to_copy"})
ALLOCATING = UNINITIALISED | _FILLED | _COPIED
"""Operations that return new memory of the candidate's own."""
_FROM_NOTHING = frozenset({"empty", "empty_strided", "full", "ones", "zeros"})
"""Allocating operations without a tensor argument, from which the device could be read."""
_HELD_FRACTION = 0.25
"""Share of free GPU memory that a call's allocations may take while they are kept alive to its end. A band
that is kept alive cannot be handed out again before it is checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A guard band that was written to."""

    label: str
    """Name of the guarded buffer, in words."""
    before: bool
    """True if the band lies before the buffer's first byte."""
    count: int
    """Bytes of the band that changed."""
    distance: int
    """Bytes between the buffer and the nearest changed byte."""

    @property
    def sentence(self) -> str:
        """Sentence for a finding."""
        side = "before the first byte of" if self.before else "past the last byte of"
        where = f"{self.distance} bytes " if self.distance else "right "
        return f"{self.count} bytes were written {where}{side} {self.label}."


@dataclass(frozen=True, slots=True)
class _Guarded:
    storage: StorageWeakRef
    size_bytes: int
    label: str


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor with its strides; on a GPU the copy lies between guard bands."""
    # The simulator presents its tensors as those of a GPU; their storage says where they are.
    return between_bands(tensor) if tensor.untyped_storage().device.type == "cuda" else tensor.clone()


def between_bands(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor with its strides between two guard bands; clone one that is empty or not dense."""
    made = _allocate(tensor)
    return tensor.clone() if made is None else made.copy_(tensor)


@dataclass(slots=True, kw_only=True)
class Guards:
    """Guard bands of one candidate. Buffers that it keeps between calls stay guarded."""

    device: str = "cuda"
    """Type of the device whose allocations are guarded."""
    _known: list[_Guarded] = field(default_factory=list)
    _alive: list[torch.Tensor] = field(default_factory=list)
    _left_bytes: float = 0.0

    def release(self) -> None:
        """Release the buffers that a call kept alive for their bands, once these are checked."""
        self._alive.clear()

    def begin(self) -> None:
        """Prepare for a call: release what an earlier one kept alive, and note how much may be kept."""
        self.release()
        # Read now and not at each allocation, which may be inside the capture of a CUDA graph.
        self._left_bytes = (
            _HELD_FRACTION * torch.cuda.mem_get_info()[0] if self.device == "cuda" else math.inf
        )
        self._known = [item for item in self._known if not item.storage.expired()]

    def given(self, tensor: torch.Tensor, label: str) -> None:
        """Register a tensor: its bands, if it has any, are checked after each call while it lives."""
        if is_guarded(tensor):
            self._note(tensor, label)

    def allocated(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        label: str,
    ) -> torch.Tensor | None:
        """Run an allocating operation with its result between guard bands.

        Returns None where the caller has to run the operation as it is. That is where it allocates nothing,
        writes into a given tensor or allocates on another device, or uninitialised memory cannot have bands.
        """
        if name not in ALLOCATING or _writes_into_given(function) or not self._is_here(name, args, kwargs):
            return None
        if name in UNINITIALISED:
            # A tensor on the meta device has the result's shape and strides and takes no memory.
            like = function(*args, **{**kwargs, "device": torch.device("meta"), "pin_memory": False})
            device = kwargs.get("device")
            if device is None:
                device = self.device if name in _FROM_NOTHING else args[0].device
            made = _allocate(like, device)
        else:
            value: torch.Tensor = function(*args, **kwargs)
            made = _allocate(value)
            if made is None:
                return value
            made.copy_(value)
        if made is not None:
            self._note(made, label)
            self._hold(made)
        return made

    def breaches(self) -> tuple[Breach, ...]:
        """Return every band that changed. One wait for the device tells which did."""
        storages = [(item, _storage(item)) for item in self._known]
        bands = [
            (item, before, band)
            for item, whole in storages
            if whole is not None
            for before, band in ((True, whole[:BAND_BYTES]), (False, whole[BAND_BYTES + item.size_bytes :]))
        ]
        if not bands:
            return ()
        changed = torch.stack([(band != _BAND_BYTE).any() for _, _, band in bands]).tolist()
        return tuple(
            _breach(item, before, band)
            for (item, before, band), bad in zip(bands, changed, strict=True)
            if bad
        )

    def _is_here(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        device = kwargs.get("device")
        if device is not None:
            return torch.device(device).type == self.device
        if name in _FROM_NOTHING:
            return self.device == torch.get_default_device().type
        return any(isinstance(item, torch.Tensor) and item.device.type == self.device for item in args)

    def _note(self, tensor: torch.Tensor, label: str) -> None:
        storage = tensor.untyped_storage()
        size = storage.nbytes() - 2 * BAND_BYTES
        if all(item.storage.cdata != storage._cdata for item in self._known):  # noqa: SLF001 - the storage's identity
            self._known.append(_Guarded(StorageWeakRef(storage), size, label))

    def _hold(self, tensor: torch.Tensor) -> None:
        size = tensor.untyped_storage().nbytes()
        if size <= self._left_bytes:
            self._left_bytes -= size
            self._alive.append(tensor)


def beyond_the_band(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Shift the offset in arguments of ``as_strided`` by the band, where it counts from the buffer's start.

    A tensor from `torch.empty` begins at offset 0 of its storage, and a candidate may count on that.
    """
    source, offset = args[0], args[3] if len(args) > 3 else None  # noqa: PLR2004 - storage_offset's place
    if offset is None or not isinstance(source, torch.Tensor):
        return args
    band = BAND_BYTES // source.element_size()
    # An offset from the band's length on was computed with the band in it.
    if offset >= band or source.storage_offset() < band or not _has_bands(source):
        return args
    return (*args[:3], offset + band, *args[4:])


def _has_bands(tensor: torch.Tensor) -> bool:
    """Return whether the storage behind any view of it begins with an intact band."""
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    return whole.numel() > 2 * BAND_BYTES and bool((whole[:BAND_BYTES] == _BAND_BYTE).all())


def is_guarded(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a view that :func:`between_bands` or :meth:`Guards.allocated` made."""
    offset = tensor.storage_offset() * tensor.element_size()
    whole = tensor.untyped_storage().nbytes()
    return offset == BAND_BYTES and whole == _extent(tensor) + 2 * BAND_BYTES


def _allocate(like: torch.Tensor, device: Any = None) -> torch.Tensor | None:
    """Allocate memory with the shape and strides of `like` between two bands; None where it is not dense."""
    if like.layout is not torch.strided or like.is_quantized or like.numel() == 0:
        return None
    size = _extent(like)
    if size != like.numel() * like.element_size():
        return None  # elements overlap or leave gaps: an expanded tensor, say
    where = like.device if device is None else device
    whole = torch.empty(size + 2 * BAND_BYTES, dtype=torch.uint8, device=where)
    whole[:BAND_BYTES].fill_(_BAND_BYTE)
    whole[BAND_BYTES + size :].fill_(_BAND_BYTE)
    typed = torch.empty(0, dtype=like.dtype, device=whole.device)
    return typed.set_(
        whole.untyped_storage(), BAND_BYTES // like.element_size(), tuple(like.shape), like.stride()
    )


def _extent(tensor: torch.Tensor) -> int:
    """Bytes from the first element to the end of the last: (1 + Σ (nᵢ - 1) · strideᵢ) · element size."""
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return (reach + 1) * tensor.element_size()


def _writes_into_given(function: Any) -> bool:
    return "out" in function._overloadname  # noqa: SLF001 - the only name PyTorch gives it


def _storage(item: _Guarded) -> torch.Tensor | None:
    """Bytes of a guarded storage with its bands; None where it was freed or resized."""
    storage = torch.UntypedStorage._new_with_weak_ptr(item.storage.cdata)  # noqa: SLF001 - back from it
    if storage is None or storage.nbytes() != item.size_bytes + 2 * BAND_BYTES:
        return None
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _breach(item: _Guarded, before: bool, band: torch.Tensor) -> Breach:  # noqa: FBT001 - of a pair
    places = (band != _BAND_BYTE).nonzero().reshape(-1)
    # The band before a buffer touches it with its last byte, the band after it with its first.
    nearest = int(places[-1]) if before else int(places[0])
    distance = BAND_BYTES - 1 - nearest if before else nearest
    return Breach(label=item.label, before=before, count=int(places.numel()), distance=distance)
