"""Where what a kernel read came from: inputs, PyTorch's seen operations and earlier kernels explain it.

What is left was put into memory by something that nobody saw: NumPy, another thread, another process, PyTorch
with its modes switched off.  Only on the simulator, which sees every load.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterable, Sequence

import torch

from cutegen_nb.gpu.ground import ReadStorage, Simulation

_FROM_NOTHING = frozenset({
    "arange", "empty", "empty_like", "empty_strided", "fill_", "full", "full_like", "new_empty",
    "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor", "zero_",
    "zeros", "zeros_like",
})  # fmt: skip
"""Operations whose result depends on no other memory."""
_MOST_BYTES = 64 << 20


class Explained:
    """What is known of memory during one call of a candidate."""

    def __init__(self, simulation: Simulation | None) -> None:
        self._simulation = simulation
        self._made: dict[int, int] = {}

    def given(self, tensors: Iterable[torch.Tensor]) -> None:
        """Inputs and parameters: what they hold now, before the call, is explained."""
        if self._simulation is not None:
            self._made |= {_storage(item)[0]: _digest(item) for item in tensors if _is_followed(item)}

    def made(self, name: str, sources: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        """PyTorch did an operation where it was seen; explained if what it was made from is."""
        if self._simulation is None:
            return
        in_place = name.endswith("_")
        before = set() if in_place else {_storage(item)[0] for item in sources}
        changed = [item for item in results if _storage(item)[0] not in before]
        explained = name in _FROM_NOTHING or (bool(changed) and any(map(self._is_explained, sources)))
        for item in changed:
            address, _ = _storage(item)
            # What it did in place to explained memory is as good; a copy brings what its source held.
            kept = in_place and name != "copy_" and address in self._made
            if not (explained or kept):
                self._made.pop(address, None)
            elif _is_followed(item):
                self._made[address] = _digest(item)

    def unexplained(self) -> tuple[ReadStorage, ...]:
        """What launches of this call read and nothing that was seen had put there."""
        if self._simulation is None:
            return ()
        return tuple(
            one
            for one in self._simulation.reads
            if not one.unchanged and self._made.get(one.address) != one.digest
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
    """As the simulator makes it of a storage that is read."""
    address, size = _storage(tensor)
    # Past NumPy: a storage that NumPy has seen can no longer be resized.
    return zlib.crc32((ctypes.c_ubyte * size).from_address(address)) if size else 0


def _storage(tensor: torch.Tensor) -> tuple[int, int]:
    """Where a tensor's storage lies and how large it is; nothing for one that has none (a sparse one)."""
    if tensor.layout is not torch.strided:
        return 0, 0
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - the storage itself, past any mode
        storage = tensor.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
