"""What a candidate runs on inside the worker: this machine's GPU, or the simulator behind CPU tensors.

The simulator is met only through the protocol below: ``worker.prepare`` starts it, nothing else in this
folder names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from cutegen_nb.core.evaluation import Finding, NotJudgedReason, Verdict
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.gpu.guards import Guards


class Fault(Protocol):
    """Why the machine stopped a launch."""

    @property
    def finding(self) -> Finding:
        """The place and the values seen."""
        ...

    @property
    def verdict(self) -> Verdict | None:
        """The verdict it amounts to, or None."""
        ...

    @property
    def not_judged(self) -> NotJudgedReason | None:
        """Why nothing can be said, where `verdict` is None."""
        ...


class ReadStorage(Protocol):
    """A storage that a launch loaded from."""

    @property
    def kernel(self) -> str:
        """The kernel."""
        ...

    @property
    def label(self) -> str:
        """What findings call the storage."""
        ...

    @property
    def address(self) -> int:
        """Its first byte."""
        ...

    @property
    def size_bytes(self) -> int:
        """Its whole extent."""
        ...

    @property
    def digest(self) -> int:
        """``zlib.crc32`` of its bytes as the launch found them."""
        ...

    @property
    def unchanged(self) -> bool:
        """Whether they are what the latest launch before left there."""
        ...


class WrittenStorage(Protocol):
    """A storage that a kernel stored to."""

    @property
    def kernel(self) -> str:
        """The latest kernel that did."""
        ...

    @property
    def label(self) -> str:
        """What findings call the storage."""
        ...

    @property
    def size_bytes(self) -> int:
        """Its whole extent."""
        ...

    @property
    def left(self) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        """Its bytes when that kernel had ended; None where they were too many to keep."""
        ...


class Simulation(Protocol):
    """The simulator as the worker sees it."""

    @property
    def written(self) -> Mapping[int, WrittenStorage]:
        """Storages that kernels stored to since the last reset, by the address of their first byte."""
        ...

    @property
    def reads(self) -> Sequence[ReadStorage]:
        """Storages that launches loaded from since the last reset."""
        ...

    @property
    def ptx(self) -> Mapping[str, str]:
        """PTX of every kernel compiled in this process, by its name there."""
        ...

    @property
    def launches(self) -> Sequence[LaunchProfile]:
        """Launches since the last reset, in order."""
        ...

    @property
    def fault(self) -> Fault | None:
        """The first fault since the last reset."""
        ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What checks found since the last reset in launches that went on."""
        ...

    @property
    def unfinished(self) -> str:
        """Kernel whose launch ended with neither a result nor a fault since the last reset; else empty."""
        ...

    other_contents: bool
    """Whether shared and local memory hold other bytes at first than usual."""
    stop_at: float
    """Reading of ``time.monotonic`` after which a launch is a fault."""

    def reset(self) -> None:
        """Forget launches and faults."""
        ...

    def forget_programs(self) -> None:
        """Forget what was compiled; compiled functions stay usable."""
        ...

    def forget_written(self, address: int) -> None:
        """The storage that began there is gone, and its address another's."""
        ...

    def label(self, tensor: torch.Tensor, name: str) -> None:
        """Give a tensor the name that findings call it by."""
        ...

    def unwritten(self, tensor: torch.Tensor, bits: int) -> None:
        """A tensor was allocated without a value and filled with elements of these bits."""
        ...

    def habits(self) -> AbstractContextManager[object]:
        """Make CPU tensors pass for CUDA tensors in what candidates commonly write."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A device to run on."""

    name: str
    """As reported in an evaluation."""
    architecture: str
    """``sm_80``, ``sm_90a``."""
    simulation: Simulation | None
    """None on a GPU."""
    guards: Guards | None = None
    """Bands around buffers on a GPU; None on the simulator, which sees each address."""

    @property
    def device(self) -> str:
        """Where tensors live, as torch names it."""
        return "cuda" if self.simulation is None else "cpu"

    def habits(self) -> AbstractContextManager[object]:
        """To be active while the candidate's code runs."""
        return nullcontext() if self.simulation is None else self.simulation.habits()

    def synchronize(self) -> None:
        """Wait for every kernel; raises what they raised."""
        if self.simulation is None:
            torch.cuda.synchronize()

    def reset(self) -> None:
        """Forget earlier launches."""
        if self.simulation is not None:
            self.simulation.reset()

    def label(self, tensor: torch.Tensor, name: str) -> None:
        """Name a tensor for findings."""
        if self.simulation is not None:
            self.simulation.label(tensor, name)

    def vary(self, *, other_contents: bool) -> None:
        """Let memory that nobody has written hold other bytes at first than usual, or the usual ones."""
        if self.simulation is not None:
            self.simulation.other_contents = other_contents

    def unwritten(self, tensor: torch.Tensor, bits: int) -> None:
        """A tensor holds no value yet; its elements were set to these bits."""
        if self.simulation is not None:
            self.simulation.unwritten(tensor, bits)
