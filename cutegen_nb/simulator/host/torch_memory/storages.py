"""Storages of CPU tensors as global memory of the simulated device, and their export through DLPack.

A pointer may reach the torch *storage* behind it, as it may reach its allocation on a GPU. A storage is
registered when a program takes its address: at DLPack conversion and at ``Tensor.data_ptr``. Only a weak
reference is kept, so the range of a freed tensor is out of bounds again.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef

from cutegen_nb.simulator.state.global_memory import GlobalMemory, UninitialisedMarker

_CUDA_DEVICE_TYPE = 2  # kDLCUDA in dlpack.h
_DEVICE_OFFSET_BYTES = 8  # DLTensor begins: void *data; DLDevice {int32 device_type; int32 device_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Storage whose address a program has taken."""

    reference: StorageWeakRef
    """Weak reference to the storage; it expires when the storage is freed."""
    size_bytes: int
    """Size of the whole storage in bytes."""
    label: str
    """Name of the storage in findings: dtype and shape of the tensor."""


@dataclass(slots=True)
class Storages:
    """Registry of the storages whose addresses the program has taken."""

    _memory: GlobalMemory = field(default_factory=GlobalMemory)
    _known: dict[int, _Known] = field(default_factory=dict)
    _new: set[int] = field(default_factory=set)
    _labels: dict[int, tuple[StorageWeakRef, str]] = field(default_factory=dict)
    _hosts: dict[int, StorageWeakRef] = field(default_factory=dict)
    _poisons: dict[int, tuple[StorageWeakRef, UninitialisedMarker]] = field(default_factory=dict)

    def register(self, tensor: torch.Tensor) -> None:
        """Make the storage behind a tensor reachable by kernels. Views share their base's storage."""
        if isinstance(tensor, FakeTensor):  # it has no memory
            return
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            address, size_bytes = storage.data_ptr(), storage.nbytes()
            if address == 0 or size_bytes == 0:
                return
            if self._alive(address) and self._known[address].size_bytes == size_bytes:
                return
            self._known[address] = _Known(
                reference=StorageWeakRef(storage),
                size_bytes=size_bytes,
                label=f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}",
            )
            self._new.add(address)

    def label(self, tensor: torch.Tensor, name: str) -> None:
        """Name a tensor's storage for findings; it need not be registered yet."""
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
        self._labels[address] = (StorageWeakRef(storage), name)
        self._new.add(address)

    def unwritten(self, tensor: torch.Tensor, poison: UninitialisedMarker) -> None:
        """Note that a tensor's whole storage was just filled with the marker of uninitialised memory."""
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
        if address:
            self._poisons[address] = (StorageWeakRef(storage), poison)
            self._new.add(address)

    def memory(self) -> GlobalMemory:
        """Global memory as it is now: every storage that is still alive."""
        for address in [address for address in self._known if not self._alive(address)]:
            del self._known[address]
            self._memory.forget(address)
        for address in self._new & self._known.keys():
            known = self._known[address]
            label, poison = self._label(address) or known.label, self._poison(address)
            self._memory.register(address, known.size_bytes, label, poison)
        self._new.clear()
        return self._memory

    def made_on_host(self, tensor: torch.Tensor) -> None:
        """Note that a program made this tensor without asking for a GPU."""
        if isinstance(tensor, FakeTensor):
            return
        storage = tensor.untyped_storage()
        if storage.data_ptr():
            self._hosts[storage.data_ptr()] = StorageWeakRef(storage)

    def moved(self, tensor: torch.Tensor) -> None:
        """Note that a program asked for this tensor on a GPU; its storage stands for the copy there."""
        self._hosts.pop(tensor.untyped_storage().data_ptr(), None)

    def _is_on_host(self, tensor: torch.Tensor) -> bool:
        with torch._C.DisableTorchFunction():
            known = self._hosts.get(tensor.untyped_storage().data_ptr())
        return known is not None and not known.expired()

    def holds(self, address: int, size_bytes: int) -> bool:
        """Return whether a range lies in one storage that kernels can reach."""
        return self.memory().find(address, address + size_bytes) is not None

    def shown_as_global(self, value: object) -> object:
        """Wrap a CPU tensor as global memory for the DSL's DLPack import; return anything else as it is.

        A tensor that was made on the host and never moved to a GPU is returned as it is too.
        """
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor) or self._is_on_host(value):
            return value
        self.register(value)
        return GlobalMemoryView(value)

    def _alive(self, address: int) -> bool:
        known = self._known.get(address)
        return known is not None and not known.reference.expired()

    def _poison(self, address: int) -> UninitialisedMarker | None:
        reference, poison = self._poisons.get(address, (None, None))
        return poison if reference is not None and not reference.expired() else None

    def _label(self, address: int) -> str:
        reference, name = self._labels.get(address, (None, ""))
        return name if reference is not None and not reference.expired() else ""


class GlobalMemoryView:
    """DLPack export of a CPU tensor with its device rewritten to CUDA.

    Without the rewrite the DSL gives the tensor the generic address space. Operations that need global memory
    (``cp.async``, many copy atoms) then fail to compile.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the DLPack device type and index: CUDA device 0."""
        return (_CUDA_DEVICE_TYPE, 0)

    def __dlpack__(self, **_: object) -> object:
        """Return a capsule of the tensor's own memory.

        Raises:
            BufferError: the tensor requires a gradient, as on a GPU; detach it first.
        """
        with torch._C.DisableTorchFunction():
            capsule = self._tensor.__dlpack__()
        get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
        get_pointer.restype = ctypes.c_void_p
        get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
        address = get_pointer(capsule, b"dltensor")
        device = (ctypes.c_int32 * 2).from_address(address + _DEVICE_OFFSET_BYTES)
        device[0], device[1] = _CUDA_DEVICE_TYPE, 0
        return capsule
