"""Runs CuTe DSL programs written for a GPU on the simulator, unmodified.

Set :func:`prepare_environment` before anything imports cutlass, call :func:`install` once in the
process, and wrap the program's code in :meth:`Simulation.habits`.  A process may fork afterwards; each
child compiles and launches for itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.simulator import machine
from cutegen_nb.simulator.bridge_device import DeviceFacts, device_facts
from cutegen_nb.simulator.bridge_environment import prepare_environment
from cutegen_nb.simulator.bridge_host import HostCalls, RecordedLaunch
from cutegen_nb.simulator.bridge_reads import Read, Reads
from cutegen_nb.simulator.bridge_writes import Writes, Written
from cutegen_nb.simulator.compiled_code import code_of
from cutegen_nb.simulator.faults import SimulatorFault
from cutegen_nb.simulator.findings import Findings, joined
from cutegen_nb.simulator.memory import GlobalMemory, Poison

__all__ = ["Simulation", "install", "prepare_environment"]

if TYPE_CHECKING:
    import torch

    from cutegen_nb.simulator.bridge_storage import Storages

_ENTRY = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+([\w$]+)", re.MULTILINE)
_installed: list[Simulation] = []


def install(architecture: str) -> Simulation:
    """Change torch's and the DSL's behaviour in this process so that kernels run on the simulator.

    Imports both. A second call returns the first's simulation.

    Raises:
        ConfigurationError: the DSL's version is unknown, it was imported for another architecture, or
            the process already simulates another one.
    """
    if _installed:
        if _installed[0].device.architecture != architecture:
            raise ConfigurationError(
                f"This process already simulates {_installed[0].device.architecture}, not {architecture}; "
                "start another process."
            )
        return _installed[0]
    from cutegen_nb.simulator import bridge_dsl  # only the worker may import torch

    device = device_facts(architecture)
    bridge_dsl.check_version()
    from cutegen_nb.simulator import bridge_driver
    from cutegen_nb.simulator.bridge_storage import Storages

    storages = Storages()
    simulation = Simulation(device, storages)
    bridge_driver.install(device, storages)
    bridge_dsl.install(simulation, architecture)
    _installed.append(simulation)
    return simulation


class Simulation:
    """What the programs of this process launched, and what became of it."""

    def __init__(self, device: DeviceFacts, storages: Storages) -> None:
        self.device = device
        """What programs are told about the device."""
        self.launches: list[LaunchProfile] = []
        """Counts of every launch since :meth:`reset`, in order."""
        self.ptx: dict[str, str] = {}
        """PTX of every kernel compiled in this process, by its name there; the latest of a name."""
        self.fault: SimulatorFault | None = None
        """The first fault since :meth:`reset`. It stays set whatever the program catches."""
        self.findings: tuple[Finding, ...] = ()
        """What checks found since :meth:`reset` in launches that went on, the first of each kind and line."""
        self._storages = storages
        self.unfinished = ""
        """Kernel whose launch ended with an exception other than a fault since :meth:`reset`, so that
        nothing can be said of the results; empty when there is none."""
        self._host = HostCalls(device)
        self._writes = Writes()
        self._reads = Reads()
        self.stop_at = math.inf
        """Reading of ``time.monotonic`` after which a launch is a fault."""
        self.other_contents = False
        """Whether shared and local memory hold other bytes at first: what depends on them differs."""
        self.max_ctas: int | None = None
        """How many CTAs of a larger grid run; None for all of them."""
        self.on_launch: Callable[[LaunchProfile], None] | None = None
        """Takes each launch's counts in place of :attr:`launches`, which a long program would fill."""
        self.marks_fresh_memory = False
        """Whether what ``torch.empty`` and its kin give is filled so that a kernel's read of it is found."""

    def reset(self) -> None:
        """Forget launches and fault. Compiled functions and live tensors stay usable."""
        self.launches = []
        self.fault = None
        self.findings = ()
        self.unfinished = ""
        self._host.clear()
        self._writes.clear()
        self._reads.clear()

    def forget_programs(self) -> None:
        """Forget what was compiled. Compiled functions stay usable."""
        self.ptx.clear()

    @property
    def reads(self) -> list[Read]:
        """Storages that launches loaded from since :meth:`reset`, one a launch and storage."""
        return self._reads.found

    @property
    def written(self) -> dict[int, Written]:
        """Storages that kernels stored to since :meth:`reset`, by the address of their first byte."""
        return self._writes.found

    def forget_written(self, address: int) -> None:
        """The storage that began there is gone, and its address another's."""
        self._writes.found.pop(address, None)

    def label(self, tensor: torch.Tensor, name: str) -> None:
        """Name a tensor for findings: ``input 0``, ``output``."""
        self._storages.label(tensor, name)

    def unwritten(self, tensor: torch.Tensor, bits: int) -> None:
        """A tensor was allocated without a value and filled with elements of these bits, which are no value.

        An element that still holds them when a kernel loads it was never written.
        """
        self._storages.unwritten(tensor, Poison(width=tensor.element_size(), bits=bits))

    def habits(self) -> AbstractContextManager[None]:
        """What programs for a GPU take for granted, true on CPU tensors inside ``with``."""
        from cutegen_nb.simulator.bridge_torch import habits

        return habits(self.device, self._storages, self.unwritten if self.marks_fresh_memory else None)

    def compiled(self, text: str) -> None:
        """Called by the DSL: a program was compiled to this PTX."""
        self.ptx.update(dict.fromkeys(_ENTRY.findall(text), text))

    def addresses(self, text: str, cubin: bytes) -> dict[str, int]:
        """Called by the DSL: answers to the outside calls of host code with this PTX and machine code."""
        return self._host.addresses(text, cubin)

    def shown_as_global(self, value: object) -> object:
        """Called by the DSL: what DLPack import gets in place of ``value``."""
        return self._storages.shown_as_global(value)

    def run(self, host_code: Callable[[], object]) -> object:
        """Called by the DSL: run host code, then the kernels it launched, in order.

        Raises:
            SimulatorFault: a kernel did what a GPU does not allow, or what the simulator cannot judge;
                after one, every later call raises the same.
        """
        if self.fault is not None:
            raise self.fault
        if self.unfinished:
            raise RuntimeError(
                f"The launch of {self.unfinished} ended before its time, so memory holds half a result "
                "and no later launch runs; see the first exception."
            )
        try:
            return self._run(host_code)
        except SimulatorFault as fault:
            self.fault = fault
            self.unfinished = ""
            raise
        finally:
            self._host.clear()

    def _run(self, host_code: Callable[[], object]) -> object:
        self._host.parse_loaded()
        try:
            return host_code()
        finally:  # what was launched before host code failed has happened
            self.findings = joined(self.findings, tuple(map(_refused, self._host.refused)))
            self._execute(self._host.take())
            self._host.raise_refusal()

    def _execute(self, launches: tuple[RecordedLaunch, ...]) -> None:
        memory = self._storages.memory()
        for item in launches:
            self.unfinished = item.kernel
            self._writes.begin(memory)
            found = Findings()
            try:
                profile = self._launched(item, memory, found)
            finally:
                self.findings = joined(self.findings, found.all())
            code = code_of(item.module.kernels[item.kernel], item.cubin, self._host.device.architecture)
            profile = replace(profile, resources=item.resources, code=code)
            (self.on_launch or self.launches.append)(profile)
            self._reads.end(memory, item.kernel)
            self._writes.end(memory, item.kernel)
            self.unfinished = ""

    def _launched(self, item: RecordedLaunch, memory: GlobalMemory, found: Findings) -> LaunchProfile:
        return machine.run(
            item.module,
            item.kernel,
            item.launch,
            item.parameters,
            memory,
            stop_at=self.stop_at,
            max_ctas=self.max_ctas,
            findings=found,
            device=self.device,
            other_contents=self.other_contents,
        )


def _refused(message: str) -> Finding:
    """A launch that ended with an error code, as on a GPU: what a program makes of it is its business."""
    return Finding(kind="launch-refused", message=message, severity=Severity.FLAG)
