"""System calls that no kernel's evaluation needs, refused by the Linux kernel for good (seccomp).

They are those with which a process looks into others, changes the machine or its own view of it. `clone` is
not among them, because threads need it: what confines files and network holds in a namespace made by it too.
They fail with "operation not permitted", as on a machine where a program has no right to them.
"""

from __future__ import annotations

import errno
import platform

_OTHER_PROCESSES = (
    "kcmp", "perf_event_open", "pidfd_getfd", "process_vm_readv", "process_vm_writev", "ptrace",
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
REFUSED = (*_OTHER_PROCESSES, *_KERNEL, *_NAMESPACES)
"""By name, as on x86-64 and aarch64."""
_X32 = 0x40000000
"""Added to a number on x86-64, it calls the same through another interface."""


def refuse() -> str:
    """Refuse them to this thread and all that it starts, for good; what holds now, in words."""
    try:
        import seccompy  # noqa: PLC0415 - a GPU host without pip lacks it
    except ImportError:
        return "all allowed: seccompy is not installed"
    both = (0, _X32) if platform.machine() == "x86_64" else (0,)
    try:
        if not seccompy.supported():
            return "all allowed: this kernel offers no seccomp"
        rules = seccompy.Filter()
        for name in REFUSED:
            for added in both:
                rules.errno(seccompy.syscall_nr(name) + added, errno.EPERM)
        rules.load()
    except (OSError, ValueError) as error:
        return f"all allowed: seccomp refused ({error})"
    return f"{len(REFUSED)} refused by seccomp, of other processes, namespaces and the kernel itself"
