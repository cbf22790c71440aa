"""Environment and resource limits of a child process, and the end of it and all its descendants.

These functions keep a candidate's accidents (loops, forks, memory, files, output) from reaching the notebook.
They keep keys and the home folder out of its environment, and leave no process behind. Access to files and to
the network is restricted in `confinement`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import secrets
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import cutegen_nb
from cutegen_nb.evaluator.process.bytecode import bytecode_variables

ALLOWED_VARIABLES = (
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUTEGEN_READABLE",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PATH",
    "TZ",
    "VIRTUAL_ENV",
)
"""Variables that a child gets from the person's environment. All others stay out, above all keys."""

SCRATCH_PREFIX = "kernels-"
"""Prefix of the scratch folder's name. This package's name would tell a candidate that it is being judged."""
LARGEST_FILE_BYTES = 256 << 20
"""Largest file in bytes that a candidate may write."""
PROCESSES = 32
"""Most processes under one worker; more end the evaluation. A kernel needs none but its own."""
# Options of prctl(2), from linux/prctl.h.
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def environment(inherited: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Environment of the template process, and so of every candidate.

    PYTHONPATH holds this package's folder and the person's own entries. `scratch` becomes home, temporary
    folder and the DSL's dump and cache folder, so that nothing a candidate caches outlives the evaluator.
    """
    kept = {name: inherited[name] for name in ALLOWED_VARIABLES if name in inherited}
    own = str(Path(cutegen_nb.__file__).parent.parent)
    path = [own, *(item for item in inherited.get("PYTHONPATH", "").split(os.pathsep) if item)]
    folder = str(scratch)
    kept |= bytecode_variables(inherited)
    return kept | {
        "CUTE_DSL_CACHE_DIR": folder,
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "CUTE_DSL_DUMP_DIR": folder,
        "HOME": folder,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": folder,
        "XDG_CACHE_HOME": folder,
    }


def limit_worker(memory_bytes: int | None, file_bytes: int = LARGEST_FILE_BYTES) -> None:
    """Set this process's limits: no core dump, bounded file size, bounded address space where one is given.

    `memory_bytes` counts from the address space that is already mapped. On a GPU it is None, because a CUDA
    context maps more than any sensible limit; there the supervisor watches resident memory.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    if memory_bytes is not None:
        _lower(resource.RLIMIT_AS, virtual_bytes(os.getpid()) + memory_bytes)


def _lower(kind: int, limit: int) -> None:
    """Set a soft and hard limit; a lower hard limit, as a shell may set, stays: none may be raised."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def adopt_orphans() -> bool:
    """Make this process the parent of every descendant whose own parent ends. Return False on failure."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> bool:
    """Have the kernel kill this process when its parent ends. Return False on failure."""
    return _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def outlive_parent() -> bool:
    """Undo `die_with_parent`. Return False on failure."""
    return _prctl(_PR_SET_PDEATHSIG, 0)


@contextlib.contextmanager
def not_dumpable() -> Iterator[None]:
    """Keep other processes of the same user from reading this one's memory during the block.

    The time is short because a process that is not dumpable does not own its files under ``/proc``, where
    CUDA writes.
    """
    _prctl(_PR_SET_DUMPABLE, 0)
    try:
        yield
    finally:
        _prctl(_PR_SET_DUMPABLE, 1)


def _prctl(option: int, value: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(option, value, 0, 0, 0) == 0)


def virtual_bytes(pid: int) -> int:
    """Address space of a process in bytes; 0 when it is gone."""
    return _statm(pid, 0)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process in bytes; 0 when it is gone."""
    return _statm(pid, 1)


def _statm(pid: int, column: int) -> int:
    try:
        words = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(words[column]) * resource.getpagesize()  # statm counts pages: size, resident, ...


def remove_folder(path: Path) -> None:
    """Remove a folder that a candidate could write to, whatever it holds; entries that resist stay.

    ``shutil.rmtree`` raises RecursionError at a thousand nested folders on Python 3.11, and leaves folders
    that nobody may list. Here each folder is made accessible and its subfolders are moved to the top.
    """
    with contextlib.suppress(OSError):
        with _opened(str(path), None) as top:
            _empty(top)
        path.rmdir()


def _empty(top: int) -> None:
    prefix, moved = secrets.token_hex(8), 0
    waiting = _without_files(top)
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            with _opened(name, top) as inner:
                for child in _without_files(inner):
                    moved += 1
                    if _moved(child, inner, f"{prefix}-{moved}", top):
                        waiting.append(f"{prefix}-{moved}")
            os.rmdir(name, dir_fd=top)


def _moved(child: str, inner: int, name: str, top: int) -> bool:
    """Move a folder to the top. Return False on failure."""
    try:
        with _opened(child, inner):  # opening makes it writable, without which it cannot be moved
            os.rename(child, name, src_dir_fd=inner, dst_dir_fd=top)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _opened(name: str, within: int | None) -> Iterator[int]:
    """Open a folder, never through a link, and make it readable and writable for its owner."""
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=within)
    try:
        own = f"/proc/self/fd/{place}"
        os.chmod(own, 0o700)  # noqa: PTH101 - a descriptor's path
        opened = os.open(own, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(place)
    try:
        yield opened
    finally:
        os.close(opened)


def _without_files(folder: int) -> list[str]:
    """Remove every entry that is no folder; return the names of the folders."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                else:
                    os.unlink(entry.name, dir_fd=folder)
    return folders


def children(parent: int) -> tuple[int, ...]:
    """Process ids of the living children of a process."""
    return tuple(sorted(pid for pid, its_parent in _parents().items() if its_parent == parent))


def descendants(ancestor: int) -> tuple[int, ...]:
    """Process ids of all living descendants of `ancestor`; zombies are left out."""
    parents = _parents()
    found: list[int] = []
    edge = {ancestor}
    while edge:
        edge = {pid for pid, parent in parents.items() if parent in edge}
        found += sorted(edge)
    return tuple(found)


def _parents() -> dict[int, int]:
    """Map every living process to its parent."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - a scan ten times a second, on the cheap
        if not entry.isdecimal():
            continue
        state, parent = _state_and_parent(int(entry))
        if state not in {"", "Z", "X"}:
            parents[int(entry)] = parent
    return parents


def _state_and_parent(pid: int) -> tuple[str, int]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - read many times a second
            text = file.read()
    except OSError:
        return "", 0
    # The command's name may hold blanks and brackets: split only after the last bracket.
    words = text[text.rindex(b")") + 2 :].split()
    return words[0].decode("ascii"), int(words[1])


def kill_descendants(ancestor: int, within_s: float = 10.0) -> int:
    """Kill every descendant of `ancestor`, which itself lives on; return their number.

    They are stopped first, so that a fork bomb cannot make new processes during the kill. Each pass stops
    the processes that are still running, until a pass finds no new one. Gives up after `within_s` seconds.
    """
    frozen: set[int] = set()
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        fresh = set(descendants(ancestor)) - frozen
        if not fresh:
            break
        _signal(fresh, signal.SIGSTOP)
        frozen |= fresh
    while time.monotonic() < deadline:
        left = descendants(ancestor)
        if not left:
            break
        kill(*left)
        reap(ancestor)
        time.sleep(0.002)
    return len(frozen)


def kill(*pids: int) -> None:
    """Send SIGKILL to each process; those already gone or out of reach are skipped."""
    _signal(pids, signal.SIGKILL)


def reap(ancestor: int) -> None:
    """Collect the status of every ended child, when `ancestor` is this process."""
    if ancestor != os.getpid():
        return
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
