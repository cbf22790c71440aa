"""Run unmodified CuTe DSL programs on the simulator: :func:`install` and :class:`Simulation`.

Set the variables of :func:`prepare_environment` before anything imports cutlass. Call :func:`install` once in
the process. Wrap the program's code in :meth:`Simulation.present_as_cuda`. The process may fork afterwards;
each child compiles and launches for itself.

With :attr:`Simulation.sampling` set, a launch runs for a sample of its CTAs only and leaves its counts, those
of the whole grid, in :attr:`Simulation.samples`. Tensors may then be virtual, since
nothing is done per byte of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cutegen_nb.analysis.binary.listing import KernelCode, kernel_names
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.estimate import LaunchSample
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.simulator.checkers.findings import Findings, joined
from cutegen_nb.simulator.host.compiled_code import code_of
from cutegen_nb.simulator.host.cuda_graphs.graph import CapturedGraph
from cutegen_nb.simulator.host.environment import prepare_environment
from cutegen_nb.simulator.host.runtime import CudaRuntime, RecordedLaunch
from cutegen_nb.simulator.host.torch_memory.reads import Read, Reads
from cutegen_nb.simulator.host.torch_memory.writes import StorageWrite, Writes
from cutegen_nb.simulator.host.tvm_ffi.callbacks import Symbols
from cutegen_nb.simulator.machine import machine
from cutegen_nb.simulator.ptx.faults import SimulatorFault
from cutegen_nb.simulator.sampling.sample import SampleEnded, sample_launch
from cutegen_nb.simulator.state.device import DeviceFacts, device_facts
from cutegen_nb.simulator.state.global_memory import GlobalMemory, UninitialisedMarker

__all__ = ["Simulation", "install", "prepare_environment"]

if TYPE_CHECKING:
    import torch

    from cutegen_nb.simulator.host.torch_memory.storages import Storages

_installed: list[Simulation] = []


def install(architecture: str) -> Simulation:
    """Patch the DSL and ``cuda.bindings`` in this process so that kernels run on the simulator.

    Imports torch and the DSL. A second call returns the simulation of the first.

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
    from cutegen_nb.simulator.host import dsl  # only the worker may import torch

    device = device_facts(architecture)
    dsl.check_version()
    from cutegen_nb.simulator.host import driver
    from cutegen_nb.simulator.host.allocation_alignment import align_allocations
    from cutegen_nb.simulator.host.cuda_graphs.capture import StreamCapture
    from cutegen_nb.simulator.host.torch_memory.storages import Storages

    align_allocations()
    storages = Storages()
    simulation = Simulation(device, storages)
    driver.install(device, storages, StreamCapture(simulation))
    dsl.install(simulation, architecture)
    _installed.append(simulation)
    return simulation


class Simulation:
    """Launches of this process on the simulator: counts, findings, the first fault, and limits."""

    def __init__(self, device: DeviceFacts, storages: Storages) -> None:
        self.device = device
        """Sizes and limits that programs are told when they query the device."""
        self.launches: list[LaunchProfile] = []
        """Counts of every launch since :meth:`reset`, in order."""
        self.ptx: dict[str, str] = {}
        """PTX text of every kernel compiled in this process, by kernel name; a later kernel replaces an
        earlier one of the same name."""
        self.fault: SimulatorFault | None = None
        """The first fault since :meth:`reset`. It stays set even if the program catches the exception."""
        self._executed: dict[tuple[str, str, bytes], dict[int, int]] = {}
        self.findings: tuple[Finding, ...] = ()
        """Findings of the checkers and refused launches since :meth:`reset`, the first of each kind and line.
        Faults, which stop a launch, are not among them."""
        self._storages = storages
        self.unfinished = ""
        """Kernel whose launch ended with an exception other than a fault since :meth:`reset`; empty when
        there is none. The results of such a launch are incomplete."""
        self.tvm_ffi = Symbols()
        """C functions of TVM-FFI that host code calls, with the error that it reported."""
        self.graph: CapturedGraph | None = None
        """CUDA graph that launches are added to in place of being run; None when nothing is captured."""
        self._is_running = False
        self._host = CudaRuntime(device)
        self._writes = Writes()
        self._reads = Reads()
        self.stop_at = math.inf
        """Deadline of a launch, a reading of ``time.monotonic``. A launch still running then is a fault."""
        self.other_contents = False
        """True if shared and local memory start with other bytes than usual. A second run with this set shows
        results that depend on uninitialised memory."""
        self.max_ctas: int | None = None
        """Most CTAs of a grid to run; None for all of them."""
        self.on_launch: Callable[[LaunchProfile], None] | None = None
        """Receives each launch's counts in place of :attr:`launches`, which would grow without bound in a
        long program."""
        self.sampling = False
        """True if launches run for a sample of their CTAs and fill :attr:`samples` instead of
        :attr:`launches`. Nothing is checked, outputs are incomplete, and what launches read and wrote is not
        recorded. A launch that cannot be sampled in time raises ``SampleEnded``; call :meth:`reset` then."""
        self.samples: list[LaunchSample] = []
        """Counts at the real size of every launch since :meth:`reset` that was sampled, in order."""
        self.not_sampled = ""
        """Reason for which a launch since :meth:`reset` could not be sampled; empty when there is none."""
        self.marks_fresh_memory = False
        """True if :meth:`present_as_cuda` fills the tensors of ``torch.empty`` and similar functions with a
        marker, so that a kernel's read of an unwritten element is found."""

    def reset(self) -> None:
        """Forget launches, findings and the fault. Compiled functions and live tensors stay usable."""
        if self.graph is not None:
            self.graph.close()
        self.launches = []
        self._executed = {}
        self.samples = []
        self.not_sampled = ""
        self.fault = None
        self.findings = ()
        self.unfinished = ""
        self._host.clear()
        self._writes.clear()
        self._reads.clear()

    def forget_programs(self) -> None:
        """Forget the PTX texts of :attr:`ptx`. Compiled functions stay usable."""
        self.ptx.clear()

    def code(self) -> tuple[KernelCode, ...]:
        """Return the code of every kernel launched since :meth:`reset`, in order, with its executions.

        A kernel that a fault stopped has no executions.
        """
        return tuple(
            KernelCode(kernel=kernel, ptx=text, cubin=cubin, executions=dict(executed) or None)
            for (kernel, text, cubin), executed in self._executed.items()
        )

    @property
    def reads(self) -> list[Read]:
        """Storages that launches loaded from since :meth:`reset`, one entry per launch and storage."""
        return self._reads.found

    @property
    def written(self) -> dict[int, StorageWrite]:
        """Storages that kernels stored to since :meth:`reset`, by the address of their first byte."""
        return self._writes.found

    def forget_written(self, address: int) -> None:
        """Drop the recorded write at ``address``: that storage was freed and its address may be reused."""
        self._writes.found.pop(address, None)

    def label(self, tensor: torch.Tensor, name: str) -> None:
        """Name a tensor for findings: ``input 0``, ``output``."""
        self._storages.label(tensor, name)

    def unwritten(self, tensor: torch.Tensor, bits: int) -> None:
        """Note that a tensor was allocated without a value and filled with elements of the marker ``bits``.

        An element that still holds the marker when a kernel loads it was never written.
        """
        self._storages.unwritten(tensor, UninitialisedMarker(width=tensor.element_size(), bits=bits))

    def present_as_cuda(self) -> AbstractContextManager[None]:
        """Patch torch inside ``with`` so that CPU tensors behave as CUDA tensors (``torch_patch``)."""
        from cutegen_nb.simulator.host.cuda_graphs.capture import StreamCapture
        from cutegen_nb.simulator.host.torch_patch import present_as_cuda

        fresh = self.unwritten if self.marks_fresh_memory else None
        return present_as_cuda(self.device, self._storages, StreamCapture(self), fresh)

    def compiled(self, text: str) -> None:
        """Keep the PTX of a program. Called by the patched DSL after compilation."""
        self.ptx.update(dict.fromkeys(kernel_names(text), text))

    def addresses(self, text: str, cubin: bytes) -> dict[str, int]:
        """Return addresses of the CUDA functions for host code with this PTX and cubin, by symbol name.

        Called by the patched DSL when it builds an execution engine.
        """
        return {**self._host.addresses(text, cubin), **self.tvm_ffi.addresses()}

    def shown_as_global(self, value: object) -> object:
        """Return the object that DLPack import receives in place of ``value``. Called by the patched DSL."""
        return self._storages.shown_as_global(value)

    def run(self, host_code: Callable[[], object]) -> object:
        """Run host code, then the kernels it launched, in order. Called by the patched DSL.

        Raises:
            SimulatorFault: a kernel did what a GPU does not allow, or what the simulator cannot judge;
                after one, every later call raises the same.
        """
        if self._is_running:  # an entry point, called by the executor around it
            return host_code()
        if self.fault is not None:
            raise self.fault
        if self.unfinished:
            raise RuntimeError(
                f"The launch of {self.unfinished} ended before its time, so memory holds half a result "
                "and no later launch runs; see the first exception."
            )
        self._is_running = True
        try:
            return self._run(host_code)
        except SimulatorFault as fault:
            self.fault = fault
            self.unfinished = ""
            raise
        finally:
            self._is_running = False
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
        if self.graph is not None:
            self.graph.steps += [partial(self.run, partial(self._execute, (launch,))) for launch in launches]
            return
        memory = self._storages.memory()
        for item in launches:
            self.unfinished = item.kernel
            if self.sampling:
                self.samples.append(self._sampled(item, memory))
                self.unfinished = ""
                continue
            self._writes.begin(memory)
            found = Findings()
            try:
                profile = self._launched(item, memory, found)
            finally:
                self.findings = joined(self.findings, found.all())
            profile = self._with_code(item, profile)
            (self.on_launch or self.launches.append)(profile)
            self._reads.end(memory, item.kernel)
            self._writes.end(memory, item.kernel)
            self.unfinished = ""

    def _with_code(self, item: RecordedLaunch, profile: LaunchProfile) -> LaunchProfile:
        code = code_of(item.module.kernels[item.kernel], item.cubin, self._host.device.architecture)
        return replace(profile, resources=item.resources, code=code)

    def _sampled(self, item: RecordedLaunch, memory: GlobalMemory) -> LaunchSample:
        try:
            sample = sample_launch(
                item.module, item.kernel, item.launch, item.parameters, memory, stop_at=self.stop_at,
                device=self.device,
            )  # fmt: skip
        except SampleEnded as ended:
            self.not_sampled = str(ended)
            raise
        return replace(sample, profile=self._with_code(item, sample.profile))

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
            executed=self._executed.setdefault((item.kernel, item.text, item.cubin), {}),
        )


def _refused(message: str) -> Finding:
    """Finding for a launch that returned a CUDA error code, which a program may handle; hence only a flag."""
    return Finding(kind="launch-refused", message=message, severity=Severity.FLAG)
