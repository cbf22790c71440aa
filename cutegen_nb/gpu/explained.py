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
        self._given: set[int] = set()
        self._made: dict[int, int] = {}

    def given(self, tensors: Iterable[torch.Tensor]) -> None:
        """Inputs and parameters: whatever they hold is explained."""
        if self._simulation is not None:
            self._given |= {_storage(item)[0] for item in tensors}

    def made(self, name: str, sources: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        """PyTorch did an operation where it was seen; explained if what it was made from is."""
        if self._simulation is None:
            return
        before = set() if name.endswith("_") else {_storage(item)[0] for item in sources}
        changed = [item for item in results if _storage(item)[0] not in before]
        explained = name in _FROM_NOTHING or (bool(changed) and any(map(self._is_explained, sources)))
        for item in changed:
            address, size = _storage(item)
            if not explained:
                self._made.pop(address, None)
            elif size <= _MOST_BYTES:
                self._made[address] = _digest(item)

    def unexplained(self) -> tuple[ReadStorage, ...]:
        """What launches of this call read and nothing that was seen had put there."""
        if self._simulation is None:
            return ()
        return tuple(
            one
            for one in self._simulation.reads
            if not one.unchanged
            and one.address not in self._given
            and self._made.get(one.address) != one.digest
        )

    def _is_explained(self, tensor: torch.Tensor) -> bool:
        assert self._simulation is not None
        address, _ = _storage(tensor)
        if address in self._given or address in self._simulation.written:
            return True
        return address in self._made and self._made[address] == _digest(tensor)


def _digest(tensor: torch.Tensor) -> int:
    """As the simulator makes it of a storage that is read."""
    address, size = _storage(tensor)
    # Past NumPy: a storage that NumPy has seen can no longer be resized.
    return zlib.crc32((ctypes.c_ubyte * size).from_address(address)) if size else 0


def _storage(tensor: torch.Tensor) -> tuple[int, int]:
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - the storage itself, past any mode
        storage = tensor.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
