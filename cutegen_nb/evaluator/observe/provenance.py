"""Provenance of output bytes: followed through PyTorch's operations back to a kernel's store.

Works on the simulator only, which sees every store. On a GPU stores are unknown and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.evaluator.observe.backend import SimulatorBackend, WrittenStorage
from cutegen_nb.evaluator.observe.read_sources import KnownContents


class Provenance:
    """Storages that hold bytes written by a kernel, during one call of a candidate."""

    def __init__(self, simulation: SimulatorBackend | None) -> None:
        self._simulation = simulation
        self._derived: set[int] = set()
        self._alive: list[torch.Tensor] = []
        self._by_torch: set[int] = set()
        self.explained = KnownContents(simulation)
        """Storages whose contents have a known source (`read_sources`)."""

    @property
    def known(self) -> bool:
        """True if stores are observed: on the simulator."""
        return self._simulation is not None

    @property
    def written(self) -> Mapping[int, WrittenStorage]:
        """Storages that kernels stored to, by address; none on a GPU."""
        return self._simulation.written if self._simulation is not None else {}

    def allocated(self, tensor: torch.Tensor) -> None:
        """Record new, unwritten memory. Its address may have been another storage's before."""
        address = address_of(tensor)
        if self._simulation is not None:
            self._simulation.forget_written(address)
            # Kept alive until the call is over, so that no other storage gets an address a kernel wrote to.
            self._alive.append(tensor)
        self._derived.discard(address)
        self.explained.made("empty", (), (tensor,))

    def passed_on(self, name: str, given: Any, result: Any) -> None:
        """Record an operation of PyTorch: results made from a kernel's bytes still count as a kernel's."""
        if self._simulation is None:
            return
        sources, results = plain_tensors(given), plain_tensors(result)
        if name.endswith("_"):
            self._by_torch |= {address_of(item) for item in results}
        if name == "copy_":
            sources = sources[1:]  # the first argument is the destination
        self.explained.made(name, sources, results)
        if any(self.from_kernel(item) for item in sources):
            self._derived |= {address_of(item) for item in results}

    def by_library(self, results: Sequence[torch.Tensor]) -> None:
        """Record results of operators that the problem's policy allows: they count like a kernel's."""
        if self._simulation is not None:
            self._derived |= {address_of(item) for item in results}
            # As in `allocated`: a kernel may write there, and the address must stay this storage's.
            self._alive += results

    def from_kernel(self, tensor: torch.Tensor) -> bool:
        """Return whether a kernel wrote to the tensor's storage, or PyTorch made it from such a storage."""
        address = address_of(tensor)
        return address in self._derived or address in self.written

    def equals_something_written(self, tensor: torch.Tensor) -> bool:
        """Return whether the bytes of `tensor` occur in a storage as a kernel left it."""
        wanted = _bytes(tensor).tobytes()
        return any(
            one.left is not None and wanted in one.left.tobytes()
            for one in self.written.values()
            if one.size_bytes >= len(wanted)
        )

    def changed_on_host(self, tensor: torch.Tensor) -> bool:
        """Return whether the storage differs from what its last kernel left, though PyTorch wrote no part."""
        address = address_of(tensor)
        one = self.written.get(address)
        if one is None or one.left is None or address in self._by_torch:
            return False
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - the storage itself, past any mode
            now = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
        return not np.array_equal(now, one.left)


def address_of(tensor: torch.Tensor) -> int:
    """Address of the first byte of a tensor's storage; 0 where it has none of its own (a sparse one)."""
    if tensor.layout is not torch.strided:
        return 0
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - the storage itself, past any mode
        return int(tensor.untyped_storage().data_ptr())


def plain_tensors(value: Any) -> list[torch.Tensor]:
    """Return the plain tensors and parameters of a tree of arguments or results."""
    return [leaf for leaf in tree_leaves(value) if type(leaf) in {torch.Tensor, torch.nn.Parameter}]


def _bytes(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return np.asarray(flat.numpy())
