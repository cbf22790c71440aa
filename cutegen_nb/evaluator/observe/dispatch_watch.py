"""PyTorch operations inside a candidate's ``forward``: allocation, computation, copies to and from the host.

Every ATen call of ``forward`` passes through one dispatch mode. New memory is filled with poison, so that an
element which no kernel writes cannot pass for a result. Operations that compute are recorded with the
candidate's line: the kernel has to do the work.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import GLUE_FRACTION
from cutegen_nb.core.library import Library, LibraryFamily, family_of
from cutegen_nb.evaluator.numerics.poison import poison, poison_bits
from cutegen_nb.evaluator.observe.guard_bands import ALLOCATING, UNINITIALISED, Guards, beyond_the_band
from cutegen_nb.evaluator.observe.host_reads import InputStorages
from cutegen_nb.evaluator.observe.library_results import LibraryResults
from cutegen_nb.evaluator.observe.operators import replaced_by
from cutegen_nb.evaluator.observe.provenance import Provenance, address_of, plain_tensors

_ALLOWED = UNINITIALISED | frozenset({
    "_conj", "_local_scalar_dense", "_neg_view", "_reshape_alias", "_reshape_copy", "_to_copy",
    "_unsafe_view", "alias", "arange", "as_strided", "chunk", "clone", "contiguous", "copy_", "detach",
    "detach_", "diagonal", "expand", "fill_", "flatten", "full", "full_like", "is_same_size", "lift",
    "lift_fresh", "lift_fresh_copy", "movedim", "narrow", "new_full", "new_ones", "new_zeros", "ones",
    "ones_like", "permute", "pin_memory", "record_stream", "rename", "reshape", "resize_", "scalar_tensor",
    "select", "set_", "slice", "split", "split_with_sizes", "squeeze", "squeeze_", "swapaxes", "t", "t_",
    "transpose", "transpose_", "unbind", "unflatten", "unfold", "unsqueeze", "unsqueeze_", "view",
    "view_as", "view_as_complex", "view_as_real", "zero_", "zeros", "zeros_like",
})  # fmt: skip
"""Operations that a wrapper around a kernel needs: allocation, views, metadata and copies."""

_MOVING = frozenset({"_to_copy", "copy_", "_copy_from", "_copy_from_and_resize"})
_REARRANGING = frozenset({
    "cat", "concat", "constant_pad_nd", "flip", "repeat", "roll", "rot90", "stack", "tile",
})  # fmt: skip
"""Copies to places that follow from shapes alone: a kernel's inputs padded to its tile, say."""

_COPYING = _MOVING | {"_reshape_copy", "clone", "contiguous"}
_ONLY_MOVING = _ALLOWED | _REARRANGING
_LEAST_CHANNELS = 16
"""Extent up to which padding is not counted, because tensor cores ask for so many channels."""

SMALL_FRACTION = GLUE_FRACTION
"""Share of the problem's elements below which an operation of PyTorch is not mentioned: the last additions of
a split reduction, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchCompute:
    """One operation that PyTorch ran for the candidate."""

    op: str
    """Name with overload: ``aten.relu.default``."""
    elements: int
    """Elements it read and wrote."""
    line: int
    """Line of the candidate that called it; 0 when the call came from elsewhere."""
    size_bytes: int = 0
    """Bytes it read and wrote."""
    only_moves: bool = False
    """True if it only copies values to other places: a flag, and decisive only where that is the problem."""
    replaced: bool = False
    """True if code from elsewhere stood in for the operator of that name (`operators`)."""
    family: LibraryFamily | None = None
    """Family that a policy can leave to PyTorch; None for any other operation."""
    allowed: bool = False
    """True if the problem's policy leaves that family to PyTorch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCopy:
    """Data that PyTorch copied between a GPU and the host, or values that the host read."""

    down: bool
    """True if the data went from the GPU to the host."""
    size_bytes: int
    """Bytes copied or read."""
    address: int
    """First byte of the destination's storage; 0 where values were read without a copy."""
    line: int
    """Line of the candidate that asked for it; 0 when the call came from elsewhere."""
    of_inputs: bool = False
    """True if the source was an input, or PyTorch had made it from one."""


class ForwardWatch(TorchDispatchMode):
    """Dispatch mode that is active during one call of a candidate's ``forward``.

    Args:
        path: The candidate's file.
        label: Told new memory and its name in findings.
        provenance: Told allocations and operations, to follow bytes back to a kernel.
        unwritten: Told new memory and the bits of the poison in it.
        varied: Fill new memory with other values than in the first call.
        guards: Guard bands around allocations, on a GPU.
        followed: Storages with values of the inputs.
        library: Results of the operators that the problem's policy leaves to PyTorch; None without a policy.
    """

    def __init__(  # noqa: PLR0913 - what each device shows
        self,
        path: str,
        label: Callable[[torch.Tensor, str], None] | None = None,
        provenance: Provenance | None = None,
        unwritten: Callable[[torch.Tensor, int], None] | None = None,
        *,
        varied: bool = False,
        guards: Guards | None = None,
        followed: InputStorages | None = None,
        library: LibraryResults | None = None,
    ) -> None:
        super().__init__()
        self._library = library
        self._followed = followed
        self._guards = guards
        self._varied = varied
        self._unwritten = unwritten
        self._path = path
        self._label = label
        self._provenance = provenance or Provenance(None)
        self.computed: list[TorchCompute] = []
        """Operations that computed or rearranged values, in order."""
        self.moved: list[HostCopy] = []
        """Copies between a GPU and the host, and host reads, in order."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one operation; poison new memory, record computation and copies."""
        name = func.overloadpacket.__name__
        if name == "as_strided" and self._guards is not None:
            args = beyond_the_band(args)
        if func.namespace not in _TORCHS_OWN and written_in_python(func):
            return self._own(func, args, kwargs or {})
        family = family_of(name) if func.namespace == "aten" else None
        allowed = self._library is not None and self._library.allows(family)
        # Asked before the call: code that stands in for an operator may unregister itself in it.
        replaced = (allowed or name in _ONLY_MOVING) and bool(replaced_by(func.name()))
        result = self._guarded(name, func, args, kwargs or {})
        if result is None:
            result = func(*args, **(kwargs or {}))
        self._note_move(name, args, result)
        if name in UNINITIALISED and isinstance(result, torch.Tensor):
            poison(result, other=self._varied)
            bits = poison_bits(result.dtype) if result.is_contiguous() else None
            if self._unwritten is not None and bits is not None:
                self._unwritten(result, bits)
            self._provenance.allocated(result)
            if self._label is not None:
                self._label(result, f"allocated in line {calling_line(self._path)}")
        elif name not in _ALLOWED or func.namespace not in {"aten", "prim"} or replaced:
            moves = name in _REARRANGING and func.namespace == "aten" and not replaced
            if not (moves and _pads_channels(name, args, result)):
                self._note_work(func, (args, kwargs, result), moves=moves, replaced=replaced, allowed=allowed)
        elif name in _COPYING and not _between_devices(args, result):
            # Casts and copies on one device: decisive where they are the whole problem.
            self._note_work(func, (args[-1:] if name == "copy_" else args[:1], result), moves=True)
        if name not in UNINITIALISED:
            self._provenance.passed_on(name, (args, kwargs), result)
            self._note_library(name, family if allowed and not replaced else None, (args, kwargs), result)
        if self._followed is not None:
            self._followed.passed_on(name, (args, kwargs), result)
        return result

    def _note_library(self, name: str, family: LibraryFamily | None, given: Any, result: Any) -> None:
        """Record what a problem's policy leaves to PyTorch, and the copies of it."""
        if self._library is None:
            return
        sources, results = plain_tensors(given), plain_tensors(result)
        if family is None:
            moves = name in _ONLY_MOVING | _COPYING
            self._library.passed_on(name, sources, results, moves=moves)
        else:
            self._library.ran(family, sources, results)
            self._provenance.by_library(results)

    def _note_work(
        self, func: Any, tree: Any, *, moves: bool, replaced: bool = False, allowed: bool = False
    ) -> None:
        leaves = [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
        self.computed.append(
            TorchCompute(
                op=str(func),
                elements=sum(leaf.numel() for leaf in leaves),
                size_bytes=sum(leaf.numel() * leaf.element_size() for leaf in leaves),
                line=calling_line(self._path),
                only_moves=moves,
                replaced=replaced,
                family=family_of(str(func)),
                allowed=allowed and not replaced,
            )
        )

    def read_on_host(self, source: torch.Tensor) -> None:
        """Record a host read that no copy of PyTorch's shows: on the simulator."""
        self._move(source, down=True, address=0)

    def _own(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator that the candidate defined around its kernel, and watch what it calls instead."""
        leaves = tree_leaves((args, kwargs))
        on_gpu = any(isinstance(leaf, torch.Tensor) and leaf.is_cuda for leaf in leaves)
        key = torch._C.DispatchKey.CUDA if on_gpu else torch._C.DispatchKey.CPU  # noqa: SLF001 - no public name
        with self:
            return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)  # noqa: SLF001 - as above

    def _guarded(
        self,
        name: str,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> torch.Tensor | None:
        if self._guards is None or name not in ALLOCATING:
            return None
        label = f"the memory allocated in line {calling_line(self._path)}"
        return self._guards.allocated(name, func, args, kwargs, label)

    def _note_move(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        source = args[1] if name == "copy_" and len(args) > 1 else args[0] if args else None
        if not isinstance(source, torch.Tensor):
            return
        if name == "_local_scalar_dense":  # Tensor.item()
            if source.is_cuda or self._is_of_inputs(source):
                self._move(source, down=True, address=0)
        elif name in _MOVING and isinstance(result, torch.Tensor) and source.is_cuda is not result.is_cuda:
            self._move(source, down=source.is_cuda, address=address_of(result))

    def _move(self, source: torch.Tensor, *, down: bool, address: int) -> None:
        size, line = source.numel() * source.element_size(), calling_line(self._path)
        of_inputs = self._is_of_inputs(source)
        self.moved.append(
            HostCopy(down=down, size_bytes=size, address=address, line=line, of_inputs=of_inputs)
        )

    def _is_of_inputs(self, source: torch.Tensor) -> bool:
        return self._followed is not None and self._followed.holds(source)


def _pads_channels(name: str, args: tuple[Any, ...], result: Any) -> bool:
    """Return whether an operation pads, and no dimension that it pads is then longer than 16."""
    if name != "constant_pad_nd":
        return False
    pairs = zip(args[0].shape, result.shape, strict=True)
    return all(before == after or after <= _LEAST_CHANNELS for before, after in pairs)


def _between_devices(args: tuple[Any, ...], result: Any) -> bool:
    source = args[1] if len(args) > 1 and isinstance(args[1], torch.Tensor) else args[0]
    return isinstance(result, torch.Tensor) and source.device != result.device


_TORCHS_OWN = frozenset({"aten", "prim", "prims"})
_REGISTERED = re.compile(r"^(?!debug)\S+: registered at (.*?):\d+ ::", re.MULTILINE)
"""Source files of an operator's kernels, in the dispatcher's dump."""


def written_in_python(func: Any) -> bool:
    """Return whether every kernel of an operator was registered from Python (``torch.library.custom_op``)."""
    places = _REGISTERED.findall(torch._C._dispatch_dump(func.name()))  # noqa: SLF001 - no public way
    return bool(places) and all(place.endswith(".py") for place in places)


def calling_line(path: str) -> int:
    """Line of the innermost frame of file `path` on this thread's stack; 0 when there is none."""
    frame = sys._getframe(1)  # noqa: SLF001 - the documented way to look at the stack
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return 0


class OperationNames(TorchDispatchMode):
    """Dispatch mode that collects the names of operations."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Note the operation's name and run it."""
        self.seen.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))

    def only_library(self, library: Library) -> bool:
        """Return whether operators of a policy's families did everything but copy and cast."""
        working = self.seen - _ONLY_MOVING - _COPYING
        return bool(working) and all(family_of(name) in library for name in working)

    @property
    def only_rearranged(self) -> bool:
        """True if values were copied to other places or cast, and nothing else was done."""
        return bool(self.seen & (_REARRANGING | _COPYING)) and self.seen <= _ONLY_MOVING


def threads() -> int:
    """Number of threads of this process; where /proc can be read, those outside Python included."""
    try:
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - twice a call
    except OSError:
        return threading.active_count()
