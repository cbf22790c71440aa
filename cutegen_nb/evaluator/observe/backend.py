"""Devices that candidates run on inside the worker: this machine's GPU, or the simulator behind CPU tensors.

``worker.prepare`` starts the simulator. Checks use it only through the protocols below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from cutegen_nb.analysis.binary.listing import KernelCode
from cutegen_nb.core.estimate import LaunchSample
from cutegen_nb.core.evaluation import NotJudgedReason, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.evaluator.observe.guard_bands import Guards


class Fault(Protocol):
    """Reason why the simulated machine stopped a launch."""

    @property
    def finding(self) -> Finding:
        """Finding with the place in the source and the values seen."""
        ...

    @property
    def verdict(self) -> Verdict | None:
        """Verdict that the fault amounts to; None where there is none."""
        ...

    @property
    def not_judged(self) -> NotJudgedReason | None:
        """Reason why there is no verdict, where `verdict` is None."""
        ...


class ReadStorage(Protocol):
    """A storage that a launch loaded from."""

    @property
    def kernel(self) -> str:
        """Name of the kernel that loaded from it."""
        ...

    @property
    def label(self) -> str:
        """Name of the storage in findings."""
        ...

    @property
    def address(self) -> int:
        """Address of the first byte."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole storage."""
        ...

    @property
    def digest(self) -> int:
        """``zlib.crc32`` of the storage's bytes as the launch found them."""
        ...

    @property
    def unchanged(self) -> bool:
        """True if the bytes are those that the latest launch to touch the storage left there."""
        ...


class WrittenStorage(Protocol):
    """A storage that a kernel stored to."""

    @property
    def kernel(self) -> str:
        """Name of the latest kernel that stored to it."""
        ...

    @property
    def label(self) -> str:
        """Name of the storage in findings."""
        ...

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole storage."""
        ...

    @property
    def left(self) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        """Contents after the latest kernel; None where they were too many to keep."""
        ...


class SimulatorBackend(Protocol):
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
        """PTX of every kernel compiled in this process, by the kernel's name in it."""
        ...

    @property
    def launches(self) -> Sequence[LaunchProfile]:
        """Launches since the last reset, in order."""
        ...

    def code(self) -> tuple[KernelCode, ...]:
        """Return the code of every kernel launched since the last reset, in order, with its executions."""
        ...

    @property
    def fault(self) -> Fault | None:
        """The first fault since the last reset."""
        ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the machine's checks since the last reset, in launches that were not stopped."""
        ...

    @property
    def unfinished(self) -> str:
        """Kernel whose launch, since the last reset, ended with neither result nor fault; else empty."""
        ...

    @property
    def samples(self) -> Sequence[LaunchSample]:
        """Counts of the sampled launches since the last reset, in order."""
        ...

    @property
    def not_sampled(self) -> str:
        """Reason for which a launch since the last reset could not be sampled; else empty."""
        ...

    other_contents: bool
    """True if shared and local memory begin with other bytes than usual."""
    stop_at: float
    """Reading of ``time.monotonic`` after which a launch is stopped with a fault."""
    sampling: bool
    """True if launches run for a sample of their CTAs and fill `samples` instead of `launches`."""

    def reset(self) -> None:
        """Forget launches and faults."""
        ...

    def forget_programs(self) -> None:
        """Forget compiled programs; functions compiled from them stay usable."""
        ...

    def forget_written(self, address: int) -> None:
        """Forget the storage that began at `address`, which now belongs to another."""
        ...

    def label(self, tensor: torch.Tensor, name: str) -> None:
        """Set the name of a tensor in findings."""
        ...

    def unwritten(self, tensor: torch.Tensor, bits: int) -> None:
        """Mark a tensor as allocated without a value and filled with elements of these `bits`."""
        ...

    def present_as_cuda(self) -> AbstractContextManager[object]:
        """Make CPU tensors pass for CUDA tensors in code that candidates commonly write."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDevice:
    """Device that candidates run on: a GPU, or the simulator with its tensors in CPU memory."""

    name: str
    """Name in an evaluation."""
    architecture: str
    """Target of the compiler: ``sm_80``, ``sm_90a``."""
    simulation: SimulatorBackend | None
    """The simulator; None on a GPU."""
    guards: Guards | None = None
    """Guard bands around buffers on a GPU; None on the simulator, which checks each address."""

    @property
    def device(self) -> str:
        """Torch's name for the device that tensors are on."""
        return "cuda" if self.simulation is None else "cpu"

    def present_as_cuda(self) -> AbstractContextManager[object]:
        """Return the context for a candidate's code: the simulator's patches of torch; none on a GPU."""
        return nullcontext() if self.simulation is None else self.simulation.present_as_cuda()

    def synchronize(self) -> None:
        """Wait for every kernel on a GPU. Raises the error of a kernel that failed."""
        if self.simulation is None:
            torch.cuda.synchronize()

    def reset(self) -> None:
        """Have the simulator forget earlier launches."""
        if self.simulation is not None:
            self.simulation.reset()

    def label(self, tensor: torch.Tensor, name: str) -> None:
        """Set the name of a tensor in the simulator's findings."""
        if self.simulation is not None:
            self.simulation.label(tensor, name)

    def vary(self, *, other_contents: bool) -> None:
        """Choose the bytes that the simulator's unwritten memory begins with: other ones or the usual."""
        if self.simulation is not None:
            self.simulation.other_contents = other_contents

    def unwritten(self, tensor: torch.Tensor, bits: int) -> None:
        """Tell the simulator that a tensor holds no value yet: its elements were set to these `bits`."""
        if self.simulation is not None:
            self.simulation.unwritten(tensor, bits)
