"""One call of a candidate's ``forward`` with everything that can be observed of it from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.library import Library
from cutegen_nb.core.profile import CodeLine, LaunchProfile, LineCounters, Profile, ProfileSource
from cutegen_nb.evaluator.catalog.catalog import MACHINE_CHECKS
from cutegen_nb.evaluator.catalog.integrity import SETTINGS
from cutegen_nb.evaluator.catalog.memory import GUARDS
from cutegen_nb.evaluator.observe.backend import ExecutionDevice, ReadStorage
from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch, HostCopy, TorchCompute
from cutegen_nb.evaluator.observe.guard_bands import Guards
from cutegen_nb.evaluator.observe.host_reads import HostReads, InputStorages
from cutegen_nb.evaluator.observe.library_results import LibraryResults
from cutegen_nb.evaluator.observe.provenance import Provenance, address_of
from cutegen_nb.evaluator.problem import torch_settings
from cutegen_nb.evaluator.trial.candidate_fault import (
    RUNNING,
    CandidateFault,
    blamed,
    from_finding,
    from_simulator,
)
from cutegen_nb.evaluator.trial.compare import plain_leaves
from cutegen_nb.evaluator.trial.evidence import Evidence

_UNINITIALISED = "uninitialised-read"
"""Kind of the simulator's finding on a read of memory that nothing wrote."""
_Line = TypeVar("_Line", LineCounters, CodeLine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Provenance of one output, on the simulator."""

    address: int
    """Address of the first byte of the output's storage."""
    size_bytes: int
    """Bytes of the output."""
    from_kernel: bool
    """True if the output's bytes can be followed back to a kernel's store."""
    explained: bool
    """True if operations of PyTorch that were seen in this call made the output's bytes."""
    changed_on_host: bool
    """True if the storage differs from what its last kernel left, though PyTorch wrote no part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """Record of one call of a candidate."""

    leaves: list[Any]
    """Outputs of ``forward``, flattened, plain tensors copied."""
    computed: list[TorchCompute]
    """Operations that PyTorch ran in the call."""
    launches: tuple[LaunchProfile, ...] | None
    """Launches in order; None on a GPU, where they are not observed."""
    origins: tuple[Origin, ...] | None
    """Provenance of each output that is a plain dense tensor; None on a GPU."""
    written: tuple[str, ...]
    """Storages that kernels stored to, in words."""
    unexplained: tuple[ReadStorage, ...]
    """Storages that kernels read and whose contents have no known source; empty on a GPU."""
    moved: tuple[HostCopy, ...]
    """Copies that PyTorch made between the GPU and the host; on the simulator, reads by the host."""
    from_host: tuple[int, ...]
    """Positions of the outputs whose memory was filled from the host."""
    seconds: float
    """Wall time of the call in seconds."""
    library: Library = ()
    """Families of the operators that PyTorch ran as the problem's policy allows."""
    alone: tuple[int, ...] = ()
    """Positions of the outputs that no kernel touched: the library's alone, or an input."""
    copied: tuple[int, ...] = ()
    """Positions of the outputs that equal an input, or a result that is the library's alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Caller of a candidate under observation."""

    candidate: Callable[..., Any]
    """``ModelNew``."""
    path: Path
    """The candidate's file."""
    ground: ExecutionDevice
    """Device that the candidate runs on."""
    state: Evidence
    """Evidence, which gets flags, check results and the counts of a call that a fault ended."""
    library: Library = ()
    """Parts that the problem's policy leaves to PyTorch."""
    varied: bool = False
    """True if unwritten memory is to hold other bytes than in the first call."""

    def __call__(self, given: list[Any]) -> CallRecord:
        """Call the candidate once on the inputs `given`.

        Raises CandidateFault; where the simulator and Python both report one, the simulator's is raised.
        Raises EvaluatorError where the simulator itself failed.
        """
        self._label(given)
        self.ground.reset()
        provenance = Provenance(self.ground.simulation)
        provenance.explained.given(self._known(given))
        self.ground.vary(other_contents=self.varied)
        told = None if self.varied else self.ground.unwritten
        guards = self._guarded(given)
        followed = InputStorages([item for item in given if isinstance(item, torch.Tensor)], provenance)
        library = LibraryResults(self.library, self._known(given)) if self.library else None
        watch = ForwardWatch(
            str(self.path),
            self.ground.label,
            provenance,
            told,
            varied=self.varied,
            guards=guards,
            followed=followed,
            library=library,
        )
        reads = HostReads(followed, watch.read_on_host) if provenance.known else nullcontext()
        before = torch_settings.settings()
        began = time.monotonic()
        try:
            with blamed(RUNNING, self.path), watch, reads:
                returned = self.candidate(*given)
                self.ground.synchronize()
        except CandidateFault as fault:
            self._raise_simulated_fault()
            if fault.outcome != Judged(verdict=Verdict.OUT_OF_MEMORY):
                self._refuse_half_a_result(str(fault))
            raise
        finally:
            self._put_back(before)
        self._raise_simulated_fault()
        self._refuse_half_a_result("the candidate caught the exception")
        self._raise_breach(guards)
        return replace(
            self._seen(returned, watch, provenance, time.monotonic() - began),
            **_of_library(returned, library),
        )

    def _put_back(self, before: dict[str, Any]) -> None:
        """Restore PyTorch's settings before the judge computes with them; flag each that was changed."""
        for item in torch_settings.restore(before):
            self.state.flag(SETTINGS, item)

    def note_profile(self, launches: tuple[LaunchProfile, ...] | None) -> None:
        """Note profile and code of the latest call, the candidate's file without its folder; not on a GPU."""
        simulation = self.ground.simulation
        if launches is None or simulation is None:
            return
        named = tuple(by_file_name(launch, self.path) for launch in launches)
        self.state.profile = Profile(
            source=ProfileSource.SIMULATED, device=self.ground.architecture, launches=named
        )
        self.state.code = simulation.code()

    def _guarded(self, given: list[Any]) -> Guards | None:
        guards = self.ground.guards
        if guards is not None:
            guards.begin()
            for position, item in enumerate(given):
                if isinstance(item, torch.Tensor):
                    guards.given(item, f"input {position}")
        return guards

    def _raise_breach(self, guards: Guards | None) -> None:
        """Check the guard bands. Raises CandidateFault, OUT_OF_BOUNDS, where the call wrote to one."""
        if guards is None:
            return
        breaches = guards.breaches()
        if not breaches:
            guards.release()
            self.state.ran(GUARDS)
            return
        message = " ".join(item.sentence for item in breaches[:3])
        self.state.found(GUARDS, message)
        finding = Finding(kind="out-of-bounds", message=message)
        raise CandidateFault(Judged(verdict=Verdict.OUT_OF_BOUNDS), finding)

    def _known(self, given: list[Any]) -> list[torch.Tensor]:
        """Tensors whose contents are known before the call: inputs, parameters and buffers."""
        own = self.candidate.state_dict().values() if isinstance(self.candidate, torch.nn.Module) else ()
        return [item for item in (*given, *own) if isinstance(item, torch.Tensor)]

    def _label(self, given: list[Any]) -> None:
        for position, item in enumerate(given):
            if isinstance(item, torch.Tensor):
                self.ground.label(item, f"input {position}")
        if isinstance(self.candidate, torch.nn.Module):
            for name, parameter in self.candidate.state_dict().items():
                self.ground.label(parameter, name)

    def _seen(self, returned: Any, watch: ForwardWatch, provenance: Provenance, seconds: float) -> CallRecord:
        simulation, leaves = self.ground.simulation, plain_leaves(returned)
        return CallRecord(
            # Copied at once: a candidate may hand out the same buffer at its next call.
            leaves=[item.clone() if type(item) is torch.Tensor else item for item in leaves],
            computed=watch.computed,
            launches=None if simulation is None else tuple(simulation.launches),
            origins=_origins(leaves, provenance),
            written=tuple(
                f"{one.label} at {address:#x}, {one.size_bytes} bytes, by kernel {one.kernel}"
                for address, one in provenance.written.items()
            ),
            unexplained=provenance.explained.unexplained(),
            moved=tuple(watch.moved),
            from_host=_from_host(leaves, watch.moved),
            seconds=seconds,
        )

    def _raise_simulated_fault(self) -> None:
        simulation = self.ground.simulation
        if simulation is not None and simulation.fault is not None:
            self.note_profile(tuple(simulation.launches))
            raise from_simulator(simulation.fault)
        if simulation is not None:
            self._judge_findings(simulation.findings, tuple(simulation.launches))

    def _judge_findings(self, findings: tuple[Finding, ...], launches: tuple[LaunchProfile, ...]) -> None:
        """Note findings of the machine's checks. Raises CandidateFault for the first that decides.

        An uninitialised read is kept as a doubt until equal calls over different memory are compared.
        """
        kept = [replace(item, file="") if item.file == str(self.path) else item for item in findings]
        for item in kept:
            if item.severity is Severity.FLAG:
                self.state.flag(MACHINE_CHECKS[item.kind], item)
        for item in kept:
            if item.severity is not Severity.DECIDES:
                continue
            if item.kind == _UNINITIALISED:
                # The values read may reach no output: the comparison of two equal calls decides.
                if not self.varied and not self.state.doubts_settled:
                    self.state.doubts.append(item)
            else:
                self.state.found(MACHINE_CHECKS[item.kind], item.message)
                self.note_profile(launches)
                raise from_finding(item)
        if launches:
            self.state.passed(*MACHINE_CHECKS.values())

    def _refuse_half_a_result(self, seen: str) -> None:
        """Raise EvaluatorError where a launch ended with neither result nor fault: the simulator failed."""
        simulation = self.ground.simulation
        if simulation is not None and simulation.unfinished:
            message = (
                f"The simulator failed in kernel {simulation.unfinished}: {seen}. This is a fault of "
                "cutegen_nb; please report it with the kernel, or evaluate it on a GPU (--device cuda)."
            )
            raise EvaluatorError(message)


def _of_library(returned: Any, results: LibraryResults | None) -> dict[str, Any]:
    """Fields of a record: what the library computed, and the outputs that are its alone."""
    if results is None or not results.used:
        return {}
    plain = {torch.Tensor, torch.nn.Parameter}
    outputs = [(n, item) for n, item in enumerate(plain_leaves(returned)) if type(item) in plain]
    return {
        "library": results.used,
        "alone": tuple(n for n, item in outputs if results.alone(item)),
        "copied": tuple(n for n, item in outputs if results.copied(item)),
    }


def by_file_name(launch: LaunchProfile, path: Path) -> LaunchProfile:
    """Name the candidate's file without its folder in the lines of a launch."""
    code = launch.code and replace(launch.code, lines=_renamed(launch.code.lines, path))
    return replace(launch, lines=_renamed(launch.lines, path), code=code)


def _renamed(lines: tuple[_Line, ...], path: Path) -> tuple[_Line, ...]:
    return tuple(replace(line, file=FILE_NAME) if line.file == str(path) else line for line in lines)


def _from_host(leaves: list[Any], moved: Sequence[HostCopy]) -> tuple[int, ...]:
    """Positions of plain outputs whose storage a copy from the host filled."""
    filled = {item.address for item in moved if not item.down}
    if not filled:
        return ()
    plain = {torch.Tensor, torch.nn.Parameter}
    return tuple(n for n, item in enumerate(leaves) if type(item) in plain and address_of(item) in filled)


def _origins(leaves: list[Any], provenance: Provenance) -> tuple[Origin, ...] | None:
    if not provenance.known:
        return None
    plain = {torch.Tensor, torch.nn.Parameter}
    return tuple(
        Origin(
            address=address_of(item),
            size_bytes=item.numel() * item.element_size(),
            from_kernel=provenance.from_kernel(item) or provenance.equals_something_written(item),
            explained=provenance.explained.computed(item),
            changed_on_host=provenance.changed_on_host(item),
        )
        for item in leaves
        if type(item) in plain and item.layout is torch.strided
    )
