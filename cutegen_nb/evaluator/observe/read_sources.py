"""Sources of the bytes that kernels read: inputs, parameters, observed PyTorch operations, earlier kernels.

Bytes with none of these sources were put into memory unobserved: by NumPy, another thread, another process,
or PyTorch with its modes switched off. Works on the simulator only, which sees every load.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterable, Sequence

import torch

from cutegen_nb.evaluator.observe.backend import ReadStorage, SimulatorBackend

FROM_NOTHING = frozenset({
    "arange", "empty", "empty_like", "empty_strided", "fill_", "full", "full_like", "new_empty",
    "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor", "zero_",
    "zeros", "zeros_like",
})  # fmt: skip
"""Operations whose result depends on no other memory."""
_MOST_BYTES = 64 << 20
"""Bytes of the largest storage that is followed, as in the simulator's `torch_memory.reads`. Larger
ones count as explained."""


class KnownContents:
    """Storages whose contents have a known source, during one call of a candidate: CRC-32 by address."""

    def __init__(self, simulation: SimulatorBackend | None) -> None:
        self._simulation = simulation
        self._made: dict[int, int] = {}
        self._before: set[int] = set()

    def given(self, tensors: Iterable[torch.Tensor]) -> None:
        """Record the contents of inputs and parameters before the call as explained."""
        if self._simulation is not None:
            self._made |= {_storage(item)[0]: _digest(item) for item in tensors if _is_followed(item)}
            self._before |= set(self._made)

    def made(self, name: str, sources: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        """Record an operation of PyTorch: its results are explained if one of its sources is."""
        if self._simulation is None:
            return
        in_place = name.endswith("_")
        # A result in the storage of a source is a view: the operation wrote nothing there.
        before = set() if in_place else {_storage(item)[0] for item in sources}
        changed = [item for item in results if _storage(item)[0] not in before]
        explained = name in FROM_NOTHING or (bool(changed) and any(map(self._is_explained, sources)))
        for item in changed:
            address, _ = _storage(item)
            # In-place work on explained memory stays explained; ``copy_`` brings what its source held.
            kept = in_place and name != "copy_" and address in self._made
            if not (explained or kept):
                self._made.pop(address, None)
            elif _is_followed(item):
                self._made[address] = _digest(item)

    def unexplained(self) -> tuple[ReadStorage, ...]:
        """Return the storages that launches of this call read and whose contents have no known source."""
        if self._simulation is None:
            return ()
        return tuple(
            one
            for one in self._simulation.reads
            if not one.unchanged and self._made.get(one.address) != one.digest
        )

    def computed(self, tensor: torch.Tensor) -> bool:
        """Return whether operations of this call made a tensor's contents, which no input is or holds."""
        address, _ = _storage(tensor)
        return (
            address in self._made
            and address not in self._before
            and _is_followed(tensor)
            and self._made[address] == _digest(tensor)
        )

    def _is_explained(self, tensor: torch.Tensor) -> bool:
        assert self._simulation is not None
        address, _ = _storage(tensor)
        if address in self._simulation.written or not _is_followed(tensor):
            return True
        return address in self._made and self._made[address] == _digest(tensor)


def _is_followed(tensor: torch.Tensor) -> bool:
    return _storage(tensor)[1] <= _MOST_BYTES


def _digest(tensor: torch.Tensor) -> int:
    """CRC-32 of a storage's bytes, as the simulator computes it for a storage that is read."""
    address, size = _storage(tensor)
    # ctypes and not NumPy: a storage that NumPy has seen can no longer be resized.
    return zlib.crc32((ctypes.c_ubyte * size).from_address(address)) if size else 0


def _storage(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and bytes of a tensor's storage; zeros for a tensor without one (a sparse one)."""
    if tensor.layout is not torch.strided:
        return 0, 0
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - the storage itself, past any mode
        storage = tensor.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
