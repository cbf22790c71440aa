"""Seccomp filter: system calls that no kernel's evaluation needs, refused permanently by the Linux kernel.

Refused calls look into other processes, or change the machine or the process's own view of it. Calls that
Landlock does not cover are refused too. They change a file's mode, owner, times or attributes, or reach
another process by a Unix socket's path or by System V and POSIX memory, semaphores and queues. `clone` stays
allowed, because threads need it; the limits on files and network also hold in a namespace made by it. A
refused call fails with EPERM ("operation not permitted"), as for a program that lacks the right.

A file's mode may not be changed even in the run's own folder, since seccomp sees no path. The linkers ignore
the failure: a shared library is loaded without being executable.
"""

from __future__ import annotations

import errno
import platform
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seccompy import Args

_OTHER_PROCESSES = (
    "kcmp", "perf_event_open", "pidfd_getfd", "process_madvise", "process_mrelease", "process_vm_readv",
    "process_vm_writev", "ptrace",
)  # fmt: skip
_KERNEL = (
    "acct", "add_key", "adjtimex", "bpf", "clock_adjtime", "clock_settime", "delete_module", "finit_module",
    "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "kexec_file_load", "kexec_load",
    "keyctl", "quotactl", "reboot", "request_key", "settimeofday", "swapoff", "swapon", "syslog",
    "userfaultfd",
)  # fmt: skip
_NAMESPACES = (
    "chroot", "fsconfig", "fsmount", "fsopen", "mount", "mount_setattr", "move_mount", "open_by_handle_at",
    "open_tree", "pivot_root", "setns", "umount2", "unshare",
)  # fmt: skip
_ATTRIBUTES = (
    "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "file_setattr", "fremovexattr", "fsetxattr",
    "lremovexattr", "lsetxattr", "removexattr", "removexattrat", "setxattr", "setxattrat", "utimensat",
)  # fmt: skip
_TO_OTHERS = (
    "connect", "mq_open", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop",
    "semtimedop", "shmat", "shmctl", "shmget",
)  # fmt: skip
_OLDER = ("chmod", "chown", "futimesat", "lchown", "utime", "utimes")
"""Older calls that change files' modes, owners and times; they exist on x86-64 only."""
REFUSED = (
    *_OTHER_PROCESSES, *_KERNEL, *_NAMESPACES, *_ATTRIBUTES, *_TO_OTHERS,
    *(_OLDER if platform.machine() == "x86_64" else ()),
)  # fmt: skip
"""Calls that are refused with any arguments, by their names on this machine."""
_AF_NETLINK = 16
_NOT, _SAME = 1, 6
"""Comparisons of seccompy: the argument is not the value; the masked argument is the value."""
_INT, _DATAGRAMS = 0xFFFFFFFF, 2
"""Masks of arguments. `_INT`: the 32 bits that the kernel reads of an int. `_DATAGRAMS`: the bit that the
types SOCK_DGRAM (2) and SOCK_RAW (3) have, and no other type of Unix socket; these two send datagrams."""
_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, _AF_NETLINK)
"""Address families of sockets that stay allowed."""
# A condition: number of the argument, comparison, value, and the mask of `_SAME`.
_OF_DATAGRAMS = (1, _SAME, _DATAGRAMS, _DATAGRAMS)
_OF_ANOTHER: Args = ((0, _NOT, 0),)
"""Condition for a call on another process: argument 0 is a process id, and 0 names the caller."""
REFUSED_WITH_ARGUMENTS: tuple[tuple[str, Args], ...] = (
    # Other families, such as one that reaches a virtual machine's host, heed no network namespace.
    ("socket", tuple((0, _NOT, int(family)) for family in _FAMILIES)),
    # Datagrams reach any path without `connect`. CUDA needs a socket of another type to start.
    ("socket", ((0, _SAME, int(socket.AF_UNIX), _INT), _OF_DATAGRAMS)),
    ("socketpair", (_OF_DATAGRAMS,)),
    ("migrate_pages", _OF_ANOTHER),
    ("move_pages", _OF_ANOTHER),
    ("prlimit64", _OF_ANOTHER),
)
"""Calls that are refused only with arguments that meet all of their conditions."""
_X32 = 0x40000000
"""Bit of a call's number on x86-64 that selects the x32 interface to the same call."""


def refuse() -> str:
    """Refuse the calls to this thread and all that it starts, permanently; describe what holds now."""
    try:
        import seccompy  # noqa: PLC0415 - a GPU host without pip lacks it
    except ImportError:
        return "all allowed: seccompy is not installed"
    both = (0, _X32) if platform.machine() == "x86_64" else (0,)
    refused: tuple[tuple[str, Args], ...] = (*((name, ()) for name in REFUSED), *REFUSED_WITH_ARGUMENTS)
    try:
        if not seccompy.supported():
            return "all allowed: this kernel offers no seccomp"
        rules = seccompy.Filter()
        for name, args in refused:
            for added in both:
                rules.errno(seccompy.syscall_nr(name) + added, errno.EPERM, args=args)
        rules.load()
    except (OSError, ValueError) as error:
        return f"all allowed: seccomp refused ({error})"
    return (
        f"{len(refused)} refused by seccomp, of other processes, namespaces, file attributes and the kernel"
    )
