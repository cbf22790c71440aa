"""What the operating system keeps a candidate from, beyond its own good manners.

Four layers, each used where the kernel offers it and each named in the report and by ``doctor``:

- *files*: Landlock. Written is only the run's own folder; read are the system, Python and the run's folder,
  not the person's home and not another process's environment (Landlock forbids to look into a process
  outside, where a key may be).
- *network*: a network namespace of its own with nothing in it; where that may not be made, Landlock's rule
  against TCP.
- *rights*: every capability is given up, and none can be gained by executing a program.
- *calls*: seccomp refuses system calls that look into other processes or change the machine.

All of it holds for the process and whatever it starts, and for good.
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
from typing import TYPE_CHECKING

import cutegen_nb
from cutegen_nb.gpu import sandbox, system_calls

if TYPE_CHECKING:
    from landlockpy import AccessFS

READABLE_VARIABLE = "CUTEGEN_READABLE"
"""Folders that a problem or candidate may read besides, joined by ``os.pathsep``."""
SYSTEM = tuple(
    f"/{name}"
    for name in ("bin", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "run", "sbin", "sys", "usr")
)
"""Folders of the system, read by every program."""
_LIBRARY_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", READABLE_VARIABLE)
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_WITH_NETWORK = 4
"""The first version of Landlock that knows TCP ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What holds for a process, each part in a few words: what is used, or why nothing is."""

    files: str
    """On reading and writing files."""
    network: str
    """On talking to other machines."""
    rights: str
    """On what root may do and others may not."""
    calls: str
    """On system calls."""

    def sentence(self) -> str:
        """All of it in one line."""
        return (
            f"files: {self.files}; network: {self.network}; rights: {self.rights}; system calls: {self.calls}"
        )


def confine(folder: Path, *, files: bool = True, watched: bool = False) -> Confinement:
    """Confine this process for good; it must have one thread only.

    `folder` is where it may write; it is made where it is not, and becomes home and temporary folder.
    Without `files` the others stay open: CUDA found no device here otherwise. When it is `watched` by a tool
    that speaks with it over sockets, it stays in the network namespace that it shares with the tool.
    """
    folder.mkdir(exist_ok=True)
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(folder)))
    tempfile.tempdir = None  # asked for again, it reads TMPDIR
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
    # Whoever changes its user namespace loses its wish to die with its parent.
    sandbox.die_with_parent()
    calls = "all allowed: the tool around it may need them" if watched else system_calls.refuse()
    found = _described(version, reason, calls, alone=alone, powerless=powerless)
    return replace(found, network="that of the tool around it") if watched else found


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
    """What a confined process may read."""
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
    """Apply Landlock; its version here, 0 where there is none. Raises ImportError and OSError."""
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
        rules.allow_path("/dev", _device_rights())
        # CUDA names each of its threads with fopen(".../comm", "w"), and finds no device where it may not.
        rules.allow_path(f"/proc/{os.getpid()}/task", read | AccessFS.WRITE_FILE | AccessFS.TRUNCATE)
        rules.allow_path(folder, everything)
        rules.restrict()
    return version


def _device_rights() -> AccessFS:
    """Devices are written to and asked by ioctl: /dev/null, a GPU's own files, shared memory."""
    from landlockpy import AccessFS  # noqa: PLC0415 - a GPU host without pip lacks it

    return (
        AccessFS.READ_FILE | AccessFS.READ_DIR | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.IOCTL_DEV
    )  # fmt: skip


def leave_network() -> bool:
    """Move into a network namespace with nothing in it. False where that may not be made.

    The process must have one thread only. Sockets of the abstract kind do not reach out of it either.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWNET) == 0:
        return True
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    # Without these the process would be nobody and could not read its own files.
    with contextlib.suppress(OSError):
        _write_lines({"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"})
    return True


def _write_lines(maps: dict[str, str]) -> None:
    for name, line in maps.items():
        Path(f"/proc/self/{name}").write_text(line, encoding="ascii")


def _give_up_rights() -> bool:
    """Give up every capability, and the ways to gain one. False where the machine is not known."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None:
        return False
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    return bool(libc.syscall(number, header, nothing) == 0)


def hint(message: str) -> str:
    """A sentence to add to what is said of a problem that was refused a file; empty when none was."""
    if "PermissionError" in message:
        return (
            f"; problems and candidates may read the system and Python only: name more folders in "
            f"{READABLE_VARIABLE}, joined by {os.pathsep!r}"
        )
    if "ModuleNotFoundError" in message:
        return "; a module of your own is found when PYTHONPATH names its folder"
    return ""


def main() -> int:
    """``python -m cutegen_nb.gpu.confinement``: confine this process and say what holds, for ``doctor``."""
    with tempfile.TemporaryDirectory(prefix="cutegen-", ignore_cleanup_errors=True) as folder:
        if os.fork() == 0:
            sys.stdout.write(f"{confine(Path(folder)).sentence()}\n")
            sys.stdout.flush()
            os._exit(0)
        os.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
