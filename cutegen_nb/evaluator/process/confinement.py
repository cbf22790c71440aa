"""Sandbox for a process that runs a candidate: Landlock, network namespace, capabilities and seccomp.

Four layers, each used where the kernel offers it and each named in the report and by ``doctor``:

- *files*: Landlock. The process writes only to the run's own folder. It reads the system, Python and that
  folder, not the person's home. Landlock also forbids access to processes outside the sandbox, so their
  environments, which may hold a key, stay closed.
- *network*: an empty network namespace; where none may be created, Landlock's rule against TCP.
- *rights*: every capability is dropped, and none can be gained by executing a program.
- *calls*: seccomp refuses system calls that look into other processes or change the machine.

The restrictions are permanent and hold for every process that the confined one starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cutegen_nb
from cutegen_nb.evaluator.process import process_tree, system_calls

if TYPE_CHECKING:
    from landlockpy import AccessFS

READABLE_VARIABLE = "CUTEGEN_READABLE"
"""Variable with further folders that a problem or candidate may read, joined by ``os.pathsep``."""
SYSTEM = tuple(
    f"/{name}"
    for name in (
        "bin", "etc", "lib", "lib32", "lib64", "opt", "proc", "sbin", "sys", "usr",
        # Under /run only a driver's libraries: services keep sockets there, and containers secrets.
        "run/current-system", "run/nvidia", "run/opengl-driver",
    )
)  # fmt: skip
"""System folders that a confined process may read."""
_DEVICES = (
    "dri", "dxg", "full", "null", "nvgpu", "nvhost*", "nvidia*", "nvmap", "random", "urandom", "zero",
)  # fmt: skip
"""Patterns of usable files in /dev: GPUs and pseudo-devices like ``null``, no terminal or shared memory."""
_OWN_VARIABLES = ("HOME", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_HOME", "XDG_CACHE_HOME")
"""Variables set to the run's own folder. Triton's caches lie under TRITON_HOME, read on each use."""
_LIBRARY_VARIABLES = (
    "CUDA_HOME",
    "CUDA_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPYCACHEPREFIX",
    "VIRTUAL_ENV",
    READABLE_VARIABLE,
)
"""Variables whose folders a confined process may read."""
# From linux/sched.h, the system call tables, linux/capability.h and linux/prctl.h.
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_WITH_NETWORK = 4
"""First version of Landlock's ABI with rules for TCP ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Restrictions on a process, a phrase for each layer: the mechanism in use, or the reason for none."""

    files: str
    """Reading and writing of files."""
    network: str
    """Connections to other machines."""
    rights: str
    """Capabilities, the privileges of root."""
    calls: str
    """System calls."""

    def sentence(self) -> str:
        """Describe all four layers in one line."""
        return (
            f"files: {self.files}; network: {self.network}; rights: {self.rights}; system calls: {self.calls}"
        )


def confine(folder: Path, *, files: bool = True, watched: bool = False) -> Confinement:
    """Confine this process permanently; it must have one thread only.

    `folder` is the one folder it may write to: created if missing, then its home and temporary folder.
    With `files` false, access to files stays open, for machines where CUDA finds no device under Landlock.
    `watched` is true under a tool that talks to the process over sockets. The process then stays in the
    tool's network namespace, and no system call is refused.
    """
    folder.mkdir(exist_ok=True)
    _settle(folder)
    alone = not watched and leave_network()
    powerless = _give_up_rights()
    try:
        version = _restrict_files(folder, watched=watched) if files else 0
    except OSError as error:
        version, reason = 0, f"Landlock refused ({error.strerror or error})"
    except ImportError:
        version, reason = 0, "landlockpy is not installed"
    else:
        reason = "this kernel offers no Landlock" if files else "CUDA finds no device under Landlock here"
    # Entering a user namespace clears the parent-death signal: set it again.
    process_tree.die_with_parent()
    calls = "all allowed: the tool around it may need them" if watched else system_calls.refuse()
    found = _described(version, reason, calls, alone=alone, powerless=powerless)
    return replace(found, network="that of the tool around it") if watched else found


def _settle(folder: Path) -> None:
    """Make `folder` home, temporary folder and cache, also for modules that are already imported.

    PyTorch's compiler and Triton choose folders at their import. That was in the template, whose home this
    process may not write to.
    """
    os.environ.update(dict.fromkeys(_OWN_VARIABLES, str(folder)))
    tempfile.tempdir = None  # the next use reads TMPDIR again
    if "torch._inductor.codecache" in sys.modules:
        cache: Any = sys.modules["torch._inductor.codecache"]
        headers = folder / "precompiled_headers"
        cache._HEADER_DIR, cache._HEADER_LOCK_DIR = str(headers), str(headers / "locks")  # noqa: SLF001


def _described(version: int, reason: str, calls: str, *, alone: bool, powerless: bool) -> Confinement:
    if alone:
        network = "none, by an empty namespace"
    elif version >= _LANDLOCK_WITH_NETWORK:
        network = "no TCP, by Landlock; a namespace of its own may not be made here"
    else:
        network = "open: no namespace of its own may be made here and no Landlock forbids TCP"
    return Confinement(
        files=f"own folder written, system and Python read, by Landlock (ABI {version})" if version else
        f"open to whatever the person may read and write: {reason}",
        network=network,
        rights="no capabilities, none to be gained" if powerless else "those of the person",
        calls=calls,
    )  # fmt: skip


def readable() -> tuple[Path, ...]:
    """List the existing paths that a confined process may read, folders with all their contents."""
    named = (os.environ.get(variable, "") for variable in _LIBRARY_VARIABLES)
    found = (
        *SYSTEM,
        *(item for one in named for item in one.split(os.pathsep)),
        *(item for item in sys.path if Path(item).is_absolute()),
        *sysconfig.get_paths().values(),
        sys.prefix,
        sys.base_prefix,
        str(Path(cutegen_nb.__file__).parent.parent),
    )
    return tuple(dict.fromkeys(Path(item) for item in found if item and Path(item).exists()))


def _restrict_files(folder: Path, *, watched: bool) -> int:
    """Apply Landlock; return its ABI version, 0 where the kernel has none. Raises ImportError and OSError."""
    import landlockpy  # noqa: PLC0415 - a GPU host without pip lacks it
    from landlockpy import AccessFS, Scope  # noqa: PLC0415 - as above

    if not landlockpy.supported():
        return 0
    version = landlockpy.abi_version()
    read = AccessFS.READ_FILE | AccessFS.READ_DIR | AccessFS.EXECUTE
    everything = landlockpy.fs_for_abi(version) & ~(AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK)
    scoped = Scope.SIGNAL if watched else Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET
    with landlockpy.Ruleset(scoped=scoped) as rules:
        for path in readable():
            rules.allow_path(path, read if path.is_dir() else read & ~AccessFS.READ_DIR)
        rules.allow_path("/dev", AccessFS.READ_DIR)
        for device in devices(watched=watched):
            rules.allow_path(device, _device_rights(device))
        # CUDA names each of its threads with fopen(".../comm", "w"); where that fails, it finds no device.
        rules.allow_path(f"/proc/{os.getpid()}/task", read | AccessFS.WRITE_FILE | AccessFS.TRUNCATE)
        rules.allow_path(folder, everything)
        rules.restrict()
    return version


def devices(*, watched: bool = False) -> tuple[Path, ...]:
    """List the devices here that a confined process may use; a `watched` one shares memory with its tool."""
    names = (*_DEVICES, "shm") if watched else _DEVICES
    return tuple(sorted(path for name in names for path in Path("/dev").glob(name)))


def _device_rights(device: Path) -> AccessFS:
    """Access rights to a device: read, write, truncate and ioctl; a folder of devices may also be listed."""
    from landlockpy import AccessFS  # noqa: PLC0415 - a GPU host without pip lacks it

    rights = AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.IOCTL_DEV
    return rights | AccessFS.READ_DIR if device.is_dir() else rights


def leave_network() -> bool:
    """Move into an empty network namespace. Return False where none may be created.

    The process must have one thread only. Abstract Unix sockets do not reach out of the namespace either.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWNET) == 0:
        return True
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    # Without these maps the process has the overflow user id ("nobody") and cannot read its own files.
    with contextlib.suppress(OSError):
        _write_lines({"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"})
    return True


def _write_lines(maps: dict[str, str]) -> None:
    for name, line in maps.items():
        Path(f"/proc/self/{name}").write_text(line, encoding="ascii")


def _give_up_rights() -> bool:
    """Drop every capability and the ways to gain one. Return False on an unknown machine or a failed call."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None:
        return False
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)  # process 0: the caller
    nothing = (ctypes.c_uint32 * 6)()  # version 3 takes two triples: effective, permitted, inheritable
    return bool(libc.syscall(number, header, nothing) == 0)


def hint(message: str) -> str:
    """Advice to append to the error of a problem that was refused a file or lacks a module; else empty."""
    if "PermissionError" in message:
        return (
            f"; problems and candidates may read the system and Python only: name more folders in "
            f"{READABLE_VARIABLE}, joined by {os.pathsep!r}"
        )
    if "ModuleNotFoundError" in message:
        return "; a module of your own is found when PYTHONPATH names its folder"
    return ""


def main() -> int:
    """Confine a child process and print the restrictions in force, for ``doctor``."""
    with tempfile.TemporaryDirectory(prefix="cutegen-", ignore_cleanup_errors=True) as folder:
        if os.fork() == 0:
            sys.stdout.write(f"{confine(Path(folder)).sentence()}\n")
            sys.stdout.flush()
            os._exit(0)
        os.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
