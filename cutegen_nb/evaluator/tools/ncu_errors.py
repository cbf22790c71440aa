"""Error messages for runs of Nsight Compute without counters: the cause and a remedy.

Causes are recognised in ncu's output lines that begin with ``==ERROR==`` or ``==WARNING==``.
"""

from __future__ import annotations

import re

from cutegen_nb.core.errors import EvaluatorError

PERMISSION_PAGE = "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
ABSENT = (
    "Nsight Compute's command `ncu` was not found, so there are no hardware counters: it comes with NVIDIA's "
    "CUDA toolkit (package nsight-compute); put its folder on PATH or set CUDA_HOME."
)
_PERMISSION = (
    "The driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM): run as root or with "
    "CAP_PERFMON or CAP_SYS_ADMIN (a container with --cap-add=SYS_ADMIN), or load the driver with "
    f"NVreg_RestrictProfilingToAdminUsers=0; {PERMISSION_PAGE} says how."
)
_VIRTUAL = (
    "The GPU is a virtual one whose host does not hand on its counters: its administrator must enable "
    "profiling for this machine (on vSphere pciPassthru0.cfg.enable_profiling=1), or run where the GPU is "
    "whole."
)
SPLIT = (
    "The GPU is split (MIG) and this part shares units with others, whose counters are not given out: use an "
    "instance that fills its GPU instance, or switch MIG off (`nvidia-smi -mig 0`, as root)."
)
_BUSY = (
    "Another tool holds the GPU's counters, DCGM as a rule: pause it (`dcgmi profiling --pause`) or end the "
    "other profiler, then try again."
)
_UNKNOWN = "This Nsight Compute does not know the GPU: install one that lists it, as a rule a newer one."
_OLD_DRIVER = (
    "The driver is older than this Nsight Compute asks for: update it, or use the ncu of the driver's own "
    "CUDA version."
)
_MARKED = re.compile(r"^==(?:ERROR|WARNING)==\s*(.*)$", re.MULTILINE)
"""Lines of ncu itself, without the mark."""
_LISTED = re.compile(r"^\s*\d+\.\s+(\S.*)$", re.MULTILINE)
"""Kernels in ncu's numbered list of those that it saw."""
_KNOWN = (
    (r"ERR_NVGPUCTRPERM|permission to access NVIDIA GPU Performance Counters", _PERMISSION),
    (r"\bvGPU\b|[Vv]irtual GPU", _VIRTUAL),
    (r"\bMIG\b|Multi-Instance", SPLIT),
    (r"driver resource was unavailable|already in use|ERR_NVGPUCTRBUSY", _BUSY),
    (r"not supported on (?:this|the) (?:device|GPU|chip)|[Uu]nsupported ?(?:GPU|device)", _UNKNOWN),
    (r"[Dd]river.*(?:too old|not supported|version)|InsufficientDriver", _OLD_DRIVER),
)
"""Patterns of ncu's messages → cause and remedy; the first match counts."""


class NoCounters(EvaluatorError):
    """Raised when Nsight Compute gives no counters for a reason that is not the candidate's fault."""


def no_counters_error(log: str, *, code: int | None, matching: str) -> NoCounters:
    """Make the error of a run of ``ncu`` that profiled nothing.

    Args:
        log: both output streams of ``ncu`` and of the program under it.
        code: exit status; None where the run was terminated.
        matching: pattern that kernel names had to match, for the message.
    """
    said = " ".join(_MARKED.findall(log))
    for pattern, meaning in _KNOWN:
        if re.search(pattern, said):
            return NoCounters(meaning)
    if "No kernels were profiled" in log:
        seen = ", ".join(_LISTED.findall(log.rpartition("Available Kernels")[2])[:4])
        ran = f"it launched {seen}" if seen else "it launched none"
        return NoCounters(
            f"Nsight Compute saw no kernel named {matching}: {ran}. Kernels are looked for in the first call."
        )
    last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "it said nothing")
    first = next(iter(_MARKED.findall(log)), last)
    ended = "was ended" if code is None else f"ended with status {code}"
    return NoCounters(f"Nsight Compute {ended} and gave no counters: {(first if code else last)[:200]}")


def too_slow(deadline_s: float) -> NoCounters:
    """Make the error of a run that exceeded its deadline of `deadline_s` seconds."""
    return NoCounters(
        f"Nsight Compute was not finished after {deadline_s:g} s: it runs each kernel once for each group of "
        "counters. A smaller problem, or fewer launches a call, is faster."
    )
