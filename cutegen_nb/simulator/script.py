"""The process in which a whole program runs on the simulator.

Started by :mod:`~cutegen_nb.simulator.script_run` with one argument, an :class:`Order` as JSON.  The
program finds itself as ``python SCRIPT ARGUMENTS`` would run it: it is ``__main__``, its folder comes first
on the path, its output and its exit status are its own.  What is learned of it goes through a pipe, a line
of JSON at a time and as soon as it is known, so that a program that crashes still leaves its launches.
"""

from __future__ import annotations

import builtins
import ctypes
import json
import mmap
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.evaluation import Finding
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.core.simulation import Ending, Launches
from cutegen_nb.simulator import bridge
from cutegen_nb.simulator.bridge_layouts import LayoutNotes
from cutegen_nb.simulator.faults import SimulatorFault
from cutegen_nb.simulator.script_error import is_own, own_frames, place_of, sentence_of, show

_PR_SET_PDEATHSIG = 1
_UNUSABLE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the child is to run."""

    script: str
    """As the program finds it in ``sys.argv[0]``."""
    path: str
    """The same, absolute."""
    arguments: tuple[str, ...]
    """The rest of ``sys.argv``."""
    folder: str = ""
    """What comes first on ``sys.path``; empty for the folder of the file."""
    architecture: str
    """What kernels are compiled for; the environment was prepared for it."""
    record_fd: int
    """Where records are written to."""
    max_ctas: int | None = None
    """CTAs of a larger grid that run; None for all."""
    deadline_s: float | None = None
    """Seconds from now at which a running launch is given up."""


class Records:
    """Writes records, from this process only: a child that the program forks has none to write."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._elsewhere = mmap.mmap(-1, 1)  # one byte that processes share with those they fork
        self._pipe = os.fdopen(descriptor, "wb", buffering=0)
        self._process = os.getpid()

    def passed_by(self) -> bool:
        """Note where a forked child learned something, which has no way into the records."""
        if os.getpid() == self._process:
            return False
        self._elsewhere[0] = 1
        return True

    @property
    def elsewhere(self) -> bool:
        """Whether a forked child learned something that is not in the records."""
        return self._elsewhere[0] != 0

    def write(self, kind: str, **members: Any) -> None:  # noqa: ANN401 - any JSON value
        """Write one record; where nobody reads any more there is nobody to tell."""
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
    """Sends on what the simulation learns.

    Launches of one kernel and configuration are added up here; a sum is sent each time its number of
    launches is a power of two, and at the end.
    """

    def __init__(self, simulation: bridge.Simulation, records: Records) -> None:
        self._simulation = simulation
        self._records = records
        self._sent: tuple[Finding, ...] = ()
        self._sums: dict[tuple[object, ...], Launches] = {}

    def launched(self, profile: LaunchProfile) -> None:
        """A launch came to its end."""
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
        """Every sum as it is now, and what else was not sent yet."""
        for index, total in enumerate(self._sums.values()):
            if total.times & (total.times - 1):
                self._send(index, total)
        self.findings()

    def _send(self, index: int, total: Launches) -> None:
        self._records.write("launches", index=index, launches=encode(total))

    def findings(self) -> None:
        """Findings, where they are others than were sent last."""
        found = self._simulation.findings
        if found is not self._sent:
            self._records.write("findings", findings=encode(found))
            self._sent = found

    def fault(self, fault: SimulatorFault | None) -> None:
        """What stopped a launch, or a call that could not be answered."""
        if fault is not None:
            self._records.write(
                "fault", finding=encode(fault.finding), judged=fault.verdict is not None, message=str(fault)
            )


def main() -> None:
    """Run the program that the order names. Ends the process with the program's own status."""
    order = decode(Order, json.loads(sys.argv[1]))
    _end_with_parent()
    records = Records(order.record_fd)
    try:
        simulation = bridge.install(order.architecture)
    except ConfigurationError as error:
        records.write("unusable", message=str(error))
        sys.exit(_UNUSABLE)
    _limit_memory()
    watch = _Watch(simulation, records)
    layouts = LayoutNotes()
    layouts.install()
    simulation.max_ctas = order.max_ctas
    simulation.marks_fresh_memory = True
    simulation.on_launch = watch.launched
    if order.deadline_s is not None:
        simulation.stop_at = time.monotonic() + order.deadline_s
    records.write("ready")
    status, ending, sentence, raised = _run(order, simulation)
    watch.everything()
    records.write("layouts", layouts=encode(layouts.everywhere(is_own)))
    watch.fault(simulation.fault or (raised if isinstance(raised, SimulatorFault) else None))
    records.write("end", ending=ending.value, status=status, sentence=sentence, elsewhere=records.elsewhere)
    if raised is not None:
        show(raised)  # last, because the hook that the DSL sets for its own errors ends the process
    sys.exit(status)


def _run(order: Order, simulation: bridge.Simulation) -> tuple[int, Ending, str, BaseException | None]:
    """Exit status, how the program ended, a sentence where it did not finish, and what it raised."""
    program = _as_main(order)
    habits = simulation.habits()
    habits.__enter__()
    try:
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


def _as_main(order: Order) -> ModuleType:
    program = ModuleType("__main__")
    program.__dict__.update(__file__=order.path, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = program
    sys.argv = [order.script, *order.arguments]
    # In place of the entry that served to find this module; what Python puts there.
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
    """Bound the address space, so that a size meant for 80 GB fails in a sentence and not in the machine.

    What is mapped now (libraries) and all of the machine's memory on top of it.
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
