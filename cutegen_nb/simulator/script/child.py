"""Subprocess in which a whole program runs on the simulator.

:mod:`~cutegen_nb.simulator.script.run` starts it with one argument, a :class:`ScriptRequest` as JSON. The
program runs as under ``python SCRIPT ARGUMENTS``: it is ``__main__``, its folder comes first on ``sys.path``,
its output and its exit status are its own. Records of launches and findings go through a pipe, one line of
JSON each, as soon as they are known. So a program that crashes still leaves its launches.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import json
import mmap
import os
import resource
import runpy
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.core.simulation import Ending, Launches
from cutegen_nb.simulator.host import simulation as bridge
from cutegen_nb.simulator.host.layouts import LayoutCollector
from cutegen_nb.simulator.host.runtime import unanswered_calls
from cutegen_nb.simulator.ptx.faults import SimulatorFault
from cutegen_nb.simulator.script.traceback import is_own, own_frames, place_of, sentence_of, show

_PR_SET_PDEATHSIG = 1
"""Option of ``prctl`` for the signal that a process gets when its parent ends (``linux/prctl.h``)."""
_UNUSABLE = 2
"""Exit status if the simulator cannot run here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRequest:
    """Program that the subprocess is to run, with its settings."""

    script: str
    """Path of the program as it finds it in ``sys.argv[0]``; the name of its module with ``is_module``."""
    is_module: bool = False
    """True to run the module of that name, as ``python -m`` does."""
    path: str
    """Absolute path of the program."""
    arguments: tuple[str, ...]
    """Arguments of the program, the rest of ``sys.argv``."""
    folder: str = ""
    """First entry of ``sys.path``; empty for the folder of the program."""
    architecture: str
    """Architecture that kernels are compiled for; the environment was prepared for it."""
    record_fd: int
    """File descriptor of the pipe that records are written to."""
    max_ctas: int | None = None
    """Most CTAs of a grid to run; None for all."""
    deadline_s: float | None = None
    """Seconds from the start until a running launch is stopped; None for no deadline."""


_ELSEWHERE = (
    "It had started processes with multiprocessing, and in those no GPU is simulated. Launch from the "
    "program's own process, with one worker or none."
)


class Records:
    """Writer of records. Only this process writes; processes that the program forks do not."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._elsewhere = mmap.mmap(-1, 1)  # one byte that processes share with those they fork
        self._pipe = os.fdopen(descriptor, "wb", buffering=0)
        self._process = os.getpid()

    def passed_by(self) -> bool:
        """Return whether this is a forked child; if so, note that something is missing in the records."""
        if os.getpid() == self._process:
            return False
        self._elsewhere[0] = 1
        return True

    @property
    def elsewhere(self) -> bool:
        """True if a forked child launched a kernel, whose counts are not in the records."""
        return self._elsewhere[0] != 0

    def write(self, kind: str, **members: Any) -> None:  # noqa: ANN401 - any JSON value
        """Write one record. A closed pipe is ignored, as are calls in a forked child."""
        if os.getpid() != self._process:
            return
        line = json.dumps({"kind": kind, **members}, separators=(",", ":")).encode() + b"\n"
        try:
            remaining = memoryview(line)
            while remaining:
                remaining = remaining[self._pipe.write(remaining) or 0 :]
        except OSError:
            return


class _Watch:
    """Sender of the simulation's launches, findings and fault as records.

    Launches of one kernel and configuration are summed. A sum is sent each time its number of launches is a
    power of two, and at the end.
    """

    def __init__(self, simulation: bridge.Simulation, records: Records) -> None:
        self._simulation = simulation
        self._records = records
        self._sent: tuple[Finding, ...] = ()
        self._sums: dict[tuple[object, ...], Launches] = {}

    def launched(self, profile: LaunchProfile) -> None:
        """Add a launch that came to its end."""
        if self._records.passed_by():
            return
        key = (
            profile.kernel,
            profile.grid,
            profile.block,
            profile.dynamic_smem_bytes,
            profile.static_smem_bytes,
        )
        known = self._sums.get(key)
        total = Launches(times=1, profile=profile) if known is None else known.and_one_more(profile)
        self._sums[key] = total
        if total.times & (total.times - 1) == 0:
            self._send(list(self._sums).index(key), total)
        self.findings()

    def everything(self) -> None:
        """Send every sum and the findings that have not been sent yet."""
        for index, total in enumerate(self._sums.values()):
            if total.times & (total.times - 1):
                self._send(index, total)
        self.findings()

    def _send(self, index: int, total: Launches) -> None:
        self._records.write("launches", index=index, launches=encode(total))

    def findings(self) -> None:
        """Send the findings, if they changed since they were last sent."""
        found = self._simulation.findings
        if found is not self._sent:
            self._records.write("findings", findings=encode(found))
            self._sent = found

    def fault(self, fault: SimulatorFault | None) -> None:
        """Send the fault that stopped a launch, or that of an unanswered call."""
        if fault is not None:
            self._records.write(
                "fault", finding=encode(fault.finding), judged=fault.verdict is not None, message=str(fault)
            )


def main() -> None:
    """Run the program that the request names. Ends the process with the program's own exit status."""
    order = decode(ScriptRequest, json.loads(sys.argv[1]))
    _end_with_parent()
    records = Records(order.record_fd)
    gc.disable()  # almost all that the imports make stays
    try:
        simulation = bridge.install(order.architecture)
    except ConfigurationError as error:
        records.write("unusable", message=str(error))
        sys.exit(_UNUSABLE)
    gc.enable()
    _limit_memory()
    watch = _Watch(simulation, records)
    layouts = LayoutCollector()
    layouts.install()
    simulation.max_ctas = order.max_ctas
    simulation.marks_fresh_memory = True
    simulation.on_launch = watch.launched
    if order.deadline_s is not None:
        simulation.stop_at = time.monotonic() + order.deadline_s
    started = _started_processes()
    records.write("ready")
    status, ending, sentence, raised = _run(order, simulation)
    if ending is Ending.EXITED and any(one.method != "fork" for one in started):
        sentence = f"{sentence} {_ELSEWHERE}"
    watch.everything()
    records.write("layouts", layouts=encode(layouts.everywhere(is_own)))
    watch.fault(_first_fault(simulation, raised))
    records.write("end", ending=ending.value, status=status, sentence=sentence, elsewhere=records.elsewhere)
    if raised is not None:
        show(raised)  # last, because the hook that the DSL sets for its own errors ends the process
    sys.exit(status)


def _started_processes() -> list[Any]:
    """Return a list that receives a handle of each process that the program starts with multiprocessing."""
    started: list[Any] = []
    start = BaseProcess.start

    def noted(process: BaseProcess) -> None:
        start(process)
        started.append(vars(process)["_popen"])  # the only place that tells the start method used

    setattr(BaseProcess, "start", noted)  # noqa: B010 - a checker of types refuses a plain assignment
    return started


def _first_fault(simulation: bridge.Simulation, raised: BaseException | None) -> SimulatorFault | None:
    """Return the fault for the report: of a launch, else of a call that nothing answered, caught or not."""
    if simulation.fault is not None:
        return simulation.fault
    return raised if isinstance(raised, SimulatorFault) else next(iter(unanswered_calls), None)


def _run(
    order: ScriptRequest, simulation: bridge.Simulation
) -> tuple[int, Ending, str, BaseException | None]:
    """Run the program; return exit status, ending, a sentence unless it finished, and its exception."""
    program = _as_main(order)
    present_as_cuda = simulation.present_as_cuda()
    present_as_cuda.__enter__()
    try:
        if order.is_module:
            runpy.run_module(order.script, run_name="__main__", alter_sys=True)
            return 0, Ending.FINISHED, "", None
        with open(order.path, "rb") as file:  # noqa: PTH123 - as Python itself reads it
            code = compile(file.read(), order.path, "exec", dont_inherit=True)
        exec(code, program.__dict__)  # noqa: S102 - running it is the work
    except SystemExit as request:
        return _exited(request)
    except BaseException as error:  # noqa: BLE001 - the worker's main: whatever a program raises is recorded
        own_frames(error)
        status = 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
        return status, Ending.RAISED, sentence_of(error, place_of(error)), error
    return 0, Ending.FINISHED, "", None


def _as_main(order: ScriptRequest) -> ModuleType:
    program = ModuleType("__main__")
    program.__dict__.update(__file__=order.path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = program
    sys.argv = [order.script, *order.arguments]
    # Python puts the script's folder first; here that entry was the one by which this module was found.
    # Beside a module that is the working folder, to which its name was joined for `path`.
    sys.path[0] = order.folder or os.path.dirname(order.path)  # noqa: PTH120 - links stay as given
    return program


def _exited(request: SystemExit) -> tuple[int, Ending, str, None]:
    code = request.code
    if code is None or code == 0:
        return 0, Ending.FINISHED, "", None
    if isinstance(code, int):
        return code & 0xFF, Ending.EXITED, f"The program ended itself with status {code & 0xFF}.", None
    print(code, file=sys.stderr)  # noqa: T201 - what Python does with it
    return 1, Ending.EXITED, f"The program ended itself: {str(code)[:200]}", None


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _limit_memory() -> None:
    """Limit the address space, so that a size meant for an 80 GB GPU raises an error and spares the machine.

    The limit is the memory mapped now (libraries) plus all of the machine's physical memory.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file of ours
        mapped = int(file.read().split()[0])
    limit = (pages + mapped) * size
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


if __name__ == "__main__":
    main()
