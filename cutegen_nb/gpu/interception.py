"""What PyTorch does while a candidate's ``forward`` runs, and whether the harness is still itself.

Every ATen call of the forward passes through one dispatch mode: memory it allocates is poisoned, so
that an element the kernel does not write cannot pass; computing operations are recorded with the
candidate's line, because a kernel that lets PyTorch compute is no kernel.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.gpu.guards import ALLOCATING, UNINITIALISED, Guards, beyond_the_band
from cutegen_nb.gpu.operators import replaced_by
from cutegen_nb.gpu.patterns import poison, poison_bits
from cutegen_nb.gpu.provenance import Provenance, address_of

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
"""Allocation, views, metadata and copies: what a wrapper around a kernel needs."""

_MOVING = frozenset({"_to_copy", "copy_", "_copy_from", "_copy_from_and_resize"})
_REARRANGING = frozenset({
    "cat", "concat", "constant_pad_nd", "flip", "repeat", "roll", "rot90", "stack", "tile",
})  # fmt: skip
"""Copies to other places, decided by shapes alone: a kernel's inputs padded to its tile, say."""

_ONLY_MOVING = _ALLOWED | _REARRANGING

SMALL_FRACTION = 1 / 16
"""A PyTorch operation on fewer elements than this share of the problem's is shown, not condemned: the last
additions of a split reduction, say."""
_TOGETHER_FRACTION = 1 / 8
"""The same for all operations of a call together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchCompute:
    """One computing operation PyTorch did for the candidate."""

    op: str
    """``aten.relu.default``."""
    elements: int
    """Elements it read and wrote."""
    line: int
    """Line of the candidate that called it; 0 when the call came from elsewhere."""
    only_moves: bool = False
    """Whether it only puts values elsewhere: shown, never condemned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCopy:
    """Data that PyTorch moved between a GPU and the host."""

    down: bool
    """Whether it went from the GPU to the host."""
    size_bytes: int
    """How much."""
    address: int
    """First byte of the storage it went to."""
    line: int
    """Line of the candidate that asked for it; 0 when the call came from elsewhere."""


class ForwardWatch(TorchDispatchMode):
    """Active during one call of a candidate's ``forward``."""

    def __init__(  # noqa: PLR0913 - what each device shows
        self,
        path: str,
        label: Callable[[torch.Tensor, str], None] | None = None,
        provenance: Provenance | None = None,
        unwritten: Callable[[torch.Tensor, int], None] | None = None,
        *,
        varied: bool = False,
        guards: Guards | None = None,
    ) -> None:
        super().__init__()
        self._guards = guards
        self._varied = varied
        self._unwritten = unwritten
        self._path = path
        self._label = label
        self._provenance = provenance or Provenance(None)
        self.computed: list[TorchCompute] = []
        self.moved: list[HostCopy] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Do what was asked; poison new memory, record computation."""
        name = func.overloadpacket.__name__
        if name == "as_strided" and self._guards is not None:
            args = beyond_the_band(args)
        if func.namespace not in _TORCHS_OWN and written_in_python(func):
            return self._own(func, args, kwargs or {})
        # Before the call: what stands in for an operator may take itself away.
        replaced = name in _ONLY_MOVING and bool(replaced_by(func.name()))
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
            leaves = tree_leaves((args, kwargs, result))
            elements = sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))
            moves = name in _REARRANGING and func.namespace == "aten" and not replaced
            line = calling_line(self._path)
            self.computed.append(TorchCompute(op=str(func), elements=elements, line=line, only_moves=moves))
        if name not in UNINITIALISED:
            self._provenance.passed_on(name, (args, kwargs), result)
        return result

    def _own(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operator that the candidate defined around its kernel: its inside is watched instead."""
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
        if name == "_local_scalar_dense":
            if source.is_cuda:
                self._move(source, down=True, address=0)
        elif name in _MOVING and isinstance(result, torch.Tensor) and source.is_cuda is not result.is_cuda:
            self._move(source, down=source.is_cuda, address=address_of(result))

    def _move(self, source: torch.Tensor, *, down: bool, address: int) -> None:
        size, line = source.numel() * source.element_size(), calling_line(self._path)
        self.moved.append(HostCopy(down=down, size_bytes=size, address=address, line=line))


_TORCHS_OWN = frozenset({"aten", "prim", "prims"})
_REGISTERED = re.compile(r"^(?!debug)\S+: registered at (.*?):\d+ ::", re.MULTILINE)


def written_in_python(func: Any) -> bool:
    """Whether every kernel of an operator was registered from Python (``torch.library.custom_op``)."""
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


class Operations(TorchDispatchMode):
    """Names of what PyTorch does."""

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
        """Note the name and do it."""
        self.seen.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))

    @property
    def only_rearranged(self) -> bool:
        """Whether values were put elsewhere and nothing else was done."""
        return bool(self.seen & _REARRANGING) and self.seen <= _ONLY_MOVING


def judge_compute(
    computed: list[TorchCompute], problem_elements: int, *, to_rearrange: bool = False
) -> tuple[Finding, ...]:
    """Findings on PyTorch's share of a forward: decisive for a real share, a flag for a small one.

    One operation in one line counts by all its calls, and all lines count together: work cut into pieces is
    the same work. Where values are only put elsewhere (padded, joined) it is a flag whatever its share,
    unless the problem is `to_rearrange` them.
    """
    if to_rearrange:
        computed = [replace(item, only_moves=False) for item in computed]
    places: dict[tuple[str, int], list[TorchCompute]] = {}
    for item in computed:
        places.setdefault((item.op, item.line), []).append(item)
    findings = [_finding(items, problem_elements) for items in places.values()]
    if any(item.severity is Severity.DECIDES for item in findings):
        return tuple(findings)
    working = [item for item in computed if not item.only_moves]
    share = sum(item.elements for item in working) / max(1, problem_elements)
    if share >= _TOGETHER_FRACTION:
        names = ", ".join(sorted({item.op for item in working})[:4])
        message = (
            f"{len(working)} small operations of PyTorch's ({names}) "
            f"ran inside forward on {share:.0%} as many elements as the problem's inputs and outputs have; "
            "the kernel has to do the work."
        )
        findings.insert(0, Finding(kind="torch-compute", message=message, line=working[0].line))
    return tuple(findings)


def _finding(items: list[TorchCompute], problem_elements: int) -> Finding:
    """On all calls of one operation in one line."""
    first, elements = items[0], sum(item.elements for item in items)
    share = elements / max(1, problem_elements)
    decides = share >= SMALL_FRACTION and not first.only_moves
    times = f" in {len(items)} calls" if len(items) > 1 else ""
    rest = (
        "its time counts, and a kernel could do without"
        if first.only_moves
        else "the kernel has to do the work"
    )
    return Finding(
        kind="torch-movement" if first.only_moves else "torch-compute",
        message=(
            f"PyTorch's {first.op} ran inside forward{times} on {elements} elements "
            f"({share:.0%} of the problem's inputs and outputs); {rest}."
        ),
        severity=Severity.DECIDES if decides else Severity.FLAG,
        line=first.line,
    )


def threads() -> int:
    """Threads of this process, those outside Python included where /proc tells."""
    try:
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - twice a call
    except OSError:
        return threading.active_count()
