"""Where the bytes of an output came from: followed through PyTorch's copies back to a kernel's store.

Only on the simulator, which sees every store.  On a GPU nothing of this is known and nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.gpu.explained import Explained
from cutegen_nb.gpu.ground import Simulation, WrittenStorage

_HOST_READS = frozenset({"_local_scalar_dense"})


class Provenance:
    """Storages that hold what a kernel wrote, during one call of a candidate."""

    def __init__(self, simulation: Simulation | None) -> None:
        self._simulation = simulation
        self._derived: set[int] = set()
        self._alive: list[torch.Tensor] = []
        self._by_torch: set[int] = set()
        self.explained = Explained(simulation)
        """Where what kernels read came from."""

    @property
    def known(self) -> bool:
        """Whether stores are seen at all."""
        return self._simulation is not None

    @property
    def written(self) -> Mapping[int, WrittenStorage]:
        """Storages that kernels stored to, by address."""
        return self._simulation.written if self._simulation is not None else {}

    def allocated(self, tensor: torch.Tensor) -> None:
        """New memory, which nobody has written: its address may have been another storage's before."""
        address = address_of(tensor)
        if self._simulation is not None:
            self._simulation.forget_written(address)
            # Kept until the call is over, so that nothing else comes to lie where a kernel wrote.
            self._alive.append(tensor)
        self._derived.discard(address)
        self.explained.made("empty", (), (tensor,))

    def passed_on(self, name: str, given: Any, result: Any) -> None:
        """PyTorch did an operation: what it made of a kernel's bytes is still a kernel's."""
        if self._simulation is None:
            return
        sources, results = _tensors(given), _tensors(result)
        if name.endswith("_"):
            self._by_torch |= {address_of(item) for item in results}
        if name == "copy_":
            sources = sources[1:]
        self.explained.made(name, sources, results)
        if any(self.from_kernel(item) for item in sources) or name in _HOST_READS:
            self._derived |= {address_of(item) for item in results}

    def from_kernel(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel wrote to the storage, or PyTorch copied it from one that a kernel wrote to."""
        address = address_of(tensor)
        return address in self._derived or address in self.written

    def equals_something_written(self, tensor: torch.Tensor) -> bool:
        """Whether the very bytes of `tensor` stand in some storage as a kernel left it."""
        wanted = _bytes(tensor).tobytes()
        return any(
            one.left is not None and wanted in one.left.tobytes()
            for one in self.written.values()
            if one.size_bytes >= len(wanted)
        )

    def changed_on_host(self, tensor: torch.Tensor) -> bool:
        """Whether the storage differs from what its last kernel left, though PyTorch wrote nothing to it."""
        address = address_of(tensor)
        one = self.written.get(address)
        if one is None or one.left is None or address in self._by_torch:
            return False
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - the storage itself, past any mode
            now = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
        return not np.array_equal(now, one.left)


def address_of(tensor: torch.Tensor) -> int:
    """First byte of the storage behind a tensor; 0 where it has none of its own (a sparse one)."""
    if tensor.layout is not torch.strided:
        return 0
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - the storage itself, past any mode
        return int(tensor.untyped_storage().data_ptr())


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if type(leaf) in {torch.Tensor, torch.nn.Parameter}]


def _bytes(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return np.asarray(flat.numpy())
