"""One call of a candidate's ``forward``, with everything that can be seen of it from outside."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Finding, Judged, Severity, Verdict
from cutegen_nb.core.profile import CodeLine, LaunchProfile, LineCounters, Profile, ProfileSource
from cutegen_nb.gpu import torch_settings
from cutegen_nb.gpu.checks.registry import MACHINE_CHECKS
from cutegen_nb.gpu.checks.registry.harness import SETTINGS
from cutegen_nb.gpu.checks.registry.memory import GUARDS
from cutegen_nb.gpu.comparing import plain_leaves
from cutegen_nb.gpu.faults import RUNNING, CandidateFault, blamed, from_finding, from_simulator
from cutegen_nb.gpu.ground import Ground, ReadStorage
from cutegen_nb.gpu.guards import Guards
from cutegen_nb.gpu.interception import ForwardWatch, HostCopy, TorchCompute
from cutegen_nb.gpu.provenance import Provenance, address_of
from cutegen_nb.gpu.record import Evidence

_UNINITIALISED = "uninitialised-read"
_Line = TypeVar("_Line", LineCounters, CodeLine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where one output came from, on the simulator."""

    address: int
    """First byte of its storage."""
    size_bytes: int
    """Bytes of the output."""
    from_kernel: bool
    """Whether its bytes can be followed back to a kernel's store."""
    changed_on_host: bool
    """Whether its storage differs from what the last kernel left, with no operation of PyTorch's between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One call of a candidate."""

    leaves: list[Any]
    """What ``forward`` returned, flattened, its plain tensors copied."""
    computed: list[TorchCompute]
    """What PyTorch computed for it."""
    launches: tuple[LaunchProfile, ...] | None
    """What it launched; None on a GPU, where nothing is seen of it."""
    origins: tuple[Origin, ...] | None
    """One an output that is a tensor; None on a GPU."""
    written: tuple[str, ...]
    """Storages that kernels stored to, in words."""
    unexplained: tuple[ReadStorage, ...]
    """What kernels read and nothing that was seen had put there; empty on a GPU."""
    moved: tuple[HostCopy, ...]
    """What PyTorch copied between the GPU and the host; empty on the simulator."""
    from_host: tuple[int, ...]
    """Positions of the outputs whose memory was filled from the host."""
    seconds: float
    """Wall time of the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Calls a candidate."""

    candidate: Callable[..., Any]
    """``ModelNew``."""
    path: Path
    """Its file."""
    ground: Ground
    """What it runs on."""
    state: Evidence
    """Told the counts of a call that a fault ended."""
    varied: bool = False
    """Whether memory that nobody has written holds something else than in the first call."""

    def __call__(self, given: list[Any]) -> Called:
        """One call. Raises CandidateFault; the machine's own finding comes first."""
        self._label(given)
        self.ground.reset()
        provenance = Provenance(self.ground.simulation)
        provenance.explained.given(self._known(given))
        self.ground.vary(other_contents=self.varied)
        told = None if self.varied else self.ground.unwritten
        guards = self._guarded(given)
        watch = ForwardWatch(
            str(self.path), self.ground.label, provenance, told, varied=self.varied, guards=guards
        )
        before = torch_settings.settings()
        began = time.monotonic()
        try:
            with blamed(RUNNING, self.path), watch:
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
        return self._seen(returned, watch, provenance, time.monotonic() - began)

    def _put_back(self, before: dict[str, Any]) -> None:
        """PyTorch's settings, before anything of the judge's is computed with them."""
        for item in torch_settings.restore(before):
            self.state.flag(SETTINGS, item)

    def profile(self, launches: tuple[LaunchProfile, ...] | None) -> Profile | None:
        """The counts of a call, with the candidate's file by its name."""
        if launches is None:
            return None
        named = tuple(
            dataclasses.replace(
                launch,
                lines=tuple(map(self._by_name, launch.lines)),
                code=launch.code
                and dataclasses.replace(launch.code, lines=tuple(map(self._by_name, launch.code.lines))),
            )
            for launch in launches
        )
        return Profile(source=ProfileSource.SIMULATED, device=self.ground.architecture, launches=named)

    def _guarded(self, given: list[Any]) -> Guards | None:
        guards = self.ground.guards
        if guards is not None:
            guards.begin()
            for position, item in enumerate(given):
                if isinstance(item, torch.Tensor):
                    guards.given(item, f"input {position}")
        return guards

    def _raise_breach(self, guards: Guards | None) -> None:
        """OUT_OF_BOUNDS where the call wrote beyond a buffer. Raises CandidateFault."""
        if guards is None:
            return
        breaches = guards.breaches()
        if not breaches:
            self.state.ran(GUARDS)
            return
        message = " ".join(item.sentence for item in breaches[:3])
        self.state.found(GUARDS, message)
        finding = Finding(kind="out-of-bounds", message=message)
        raise CandidateFault(Judged(verdict=Verdict.OUT_OF_BOUNDS), finding)

    def _by_name(self, line: _Line) -> _Line:
        return dataclasses.replace(line, file=FILE_NAME) if line.file == str(self.path) else line

    def _known(self, given: list[Any]) -> list[torch.Tensor]:
        """Inputs and parameters."""
        own = self.candidate.state_dict().values() if isinstance(self.candidate, torch.nn.Module) else ()
        return [item for item in (*given, *own) if isinstance(item, torch.Tensor)]

    def _label(self, given: list[Any]) -> None:
        for position, item in enumerate(given):
            if isinstance(item, torch.Tensor):
                self.ground.label(item, f"input {position}")
        if isinstance(self.candidate, torch.nn.Module):
            for name, parameter in self.candidate.state_dict().items():
                self.ground.label(parameter, name)

    def _seen(self, returned: Any, watch: ForwardWatch, provenance: Provenance, seconds: float) -> Called:
        simulation, leaves = self.ground.simulation, plain_leaves(returned)
        return Called(
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
            self.state.profile = self.profile(tuple(simulation.launches))
            raise from_simulator(simulation.fault)
        if simulation is not None:
            self._judge_findings(simulation.findings, tuple(simulation.launches))

    def _judge_findings(self, findings: tuple[Finding, ...], launches: tuple[LaunchProfile, ...]) -> None:
        """Note what the machine's checks found; the first that decides ends the evaluation."""
        kept = [
            dataclasses.replace(item, file="") if item.file == str(self.path) else item for item in findings
        ]
        for item in kept:
            if item.severity is Severity.FLAG:
                self.state.flag(MACHINE_CHECKS[item.kind], item)
        for item in kept:
            if item.severity is not Severity.DECIDES:
                continue
            if item.kind == _UNINITIALISED:
                # A launch may leave other values where no output looks: equal calls settle it.
                if not self.varied and not self.state.doubts_settled:
                    self.state.doubts.append(item)
            else:
                self.state.found(MACHINE_CHECKS[item.kind], item.message)
                self.state.profile = self.profile(launches)
                raise from_finding(item)
        if launches:
            self.state.passed(*MACHINE_CHECKS.values())

    def _refuse_half_a_result(self, seen: str) -> None:
        """A launch that neither finished nor found a fault is our failure, not the candidate's."""
        simulation = self.ground.simulation
        if simulation is not None and simulation.unfinished:
            message = (
                f"The simulator failed in kernel {simulation.unfinished}: {seen}. This is a fault of "
                "cutegen_nb; please report it with the kernel, or evaluate it on a GPU (--device cuda)."
            )
            raise EvaluatorError(message)


def _from_host(leaves: list[Any], moved: Sequence[HostCopy]) -> tuple[int, ...]:
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
            changed_on_host=provenance.changed_on_host(item),
        )
        for item in leaves
        if type(item) in plain and item.layout is torch.strided
    )
