"""What a child process may see and use, and how its whole family of processes is ended.

What is here keeps a candidate's accidents (loops, forks, memory, files, output) from reaching the notebook,
keeps keys and the home folder out of its environment, and leaves no process behind; what it may read, and
that it talks to nobody, is `confinement`'s.
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
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "TZ",
    "VIRTUAL_ENV",
)
"""Variables a child gets from the person's environment. Everything else stays out, keys first of all."""

SCRATCH_PREFIX = "kernels-"
"""Begins the name of a candidate's folder: not our name, by which it could tell that it is being judged."""
FILE_BYTES = 256 << 20
"""Largest file a candidate may write."""
PROCESSES = 32
"""More processes than this under one worker end the evaluation. A kernel needs none but its own."""
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def environment(inherited: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The variables of the template process and so of every candidate.

    It imports this package and what the person's own process finds by PYTHONPATH. `scratch` becomes home,
    temporary folder and the DSL's dump and cache folder, so that nothing a candidate caches outlives the
    evaluator.
    """
    kept = {name: inherited[name] for name in ALLOWED_VARIABLES if name in inherited}
    own = str(Path(cutegen_nb.__file__).parent.parent)
    path = [own, *(item for item in inherited.get("PYTHONPATH", "").split(os.pathsep) if item)]
    folder = str(scratch)
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


def limit_worker(memory_bytes: int | None, file_bytes: int = FILE_BYTES) -> None:
    """Set this process's limits: no core dump, bounded files, bounded address space where one is given.

    A CUDA context maps more address space than any sensible limit, so that on a GPU `memory_bytes` is
    None here and the warden watches resident memory instead.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    if memory_bytes is not None:
        _lower(resource.RLIMIT_AS, virtual_bytes(os.getpid()) + memory_bytes)


def _lower(kind: int, limit: int) -> None:
    """Set a limit for good; one that the person's own shell keeps lower stays, because none may be raised."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def adopt_orphans() -> bool:
    """Make this process the parent of every descendant whose own parent ends. False where it cannot be."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> bool:
    """Have the kernel kill this process when its parent ends. False where it cannot be."""
    return _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def outlive_parent() -> bool:
    """Take `die_with_parent` back. False where that cannot be."""
    return _prctl(_PR_SET_PDEATHSIG, 0)


@contextlib.contextmanager
def closed_memory() -> Iterator[None]:
    """Let no other process of the same person look into this one's memory meanwhile.

    Not for longer: what belongs to the process under ``/proc`` is not its own then, and CUDA writes there.
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
    """Address space of a process; 0 when it is gone."""
    return _statm(pid, 0)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 when it is gone."""
    return _statm(pid, 1)


def _statm(pid: int, column: int) -> int:
    try:
        words = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(words[column]) * resource.getpagesize()


def remove_folder(path: Path) -> None:
    """Remove a folder that a candidate could write to, whatever it made there; what will not go stays.

    Not by ``shutil.rmtree``, which raises RecursionError at a thousand folders in each other on Python 3.11
    and leaves those that nobody may list. Here each folder is made ours and those in it are moved to the top.
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
    """Move a folder to the top; False where it does not move."""
    try:
        with _opened(child, inner):  # which makes it ours: a folder that may not be written to does not move
            os.rename(child, name, src_dir_fd=inner, dst_dir_fd=top)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _opened(name: str, within: int | None) -> Iterator[int]:
    """A folder, never through a link, made readable and writable for its owner."""
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
    """Remove what is no folder; the names of those that are."""
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
    """Living children of a process."""
    return tuple(sorted(pid for pid, its_parent in _parents().items() if its_parent == parent))


def descendants(ancestor: int) -> tuple[int, ...]:
    """Processes that come from `ancestor`, ended ones that nobody has waited for left out."""
    parents = _parents()
    found: list[int] = []
    edge = {ancestor}
    while edge:
        edge = {pid for pid, parent in parents.items() if parent in edge}
        found += sorted(edge)
    return tuple(found)


def _parents() -> dict[int, int]:
    """Parent of every living process."""
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
    # The command's name may hold blanks and brackets, so that only what follows the last bracket splits.
    words = text[text.rindex(b")") + 2 :].split()
    return words[0].decode("ascii"), int(words[1])


def end_family(ancestor: int, within_s: float = 10.0) -> int:
    """Kill every descendant of `ancestor`, which lives on, and return how many there were.

    Stopped first, so that a fork bomb cannot make new ones while the old ones are killed: each pass
    freezes whoever could fork, until a pass finds nobody new.
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
    """End processes at once; those already gone are passed over."""
    _signal(pids, signal.SIGKILL)


def reap(ancestor: int) -> None:
    """Wait for every ended child, when `ancestor` is this process."""
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
