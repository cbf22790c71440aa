"""Contents of an Nsight Compute report: kernels with metrics by name and instructions by offset.

Every reader (report file, CSV pages, NVIDIA's own module) returns these values. Only ``ncu_profile`` converts
them to a ``Profile``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_nb.core.profile import CompiledCode, KernelResources, Metric


class UnreadableReport(ValueError):
    """Raised for a file that Nsight Compute did not write, or of a version that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedInstruction:
    """One machine instruction of a kernel."""

    offset: int
    """Bytes from the beginning of the kernel's code."""
    file: str = ""
    """Source file; empty where the kernel was compiled without line information."""
    line: int = 0
    """Line in the source file, from 1; 0 without a file."""
    text: str = ""
    """SASS text; empty where the reader had no disassembler."""
    counts: dict[str, float] = field(default_factory=dict)
    """Counts by metric: ``inst_executed``, ``memory_l1_wavefronts_shared``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedKernel:
    """One launch that was profiled."""

    kernel: str
    """Name as the compiler wrote it."""
    grid: tuple[int, int, int]
    """CTAs in x, y, z."""
    block: tuple[int, int, int]
    """Threads in x, y, z."""
    metrics: dict[str, Metric]
    """Metrics of the whole launch, in base units; text and missing values are left out."""
    instructions: tuple[RecordedInstruction, ...] = ()
    """In code order; empty without source counters."""
    code: CompiledCode | None = None
    """Machine code; None where the reader has no access to it."""
    resources: KernelResources | None = None
    """Resources that the cubin states; None where the reader has no access to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Contents of one report."""

    kernels: tuple[RecordedKernel, ...]
    """In launch order."""
    device: str
    """``NVIDIA H200``; empty where the file does not say."""
    architecture: str
    """``sm_90``; empty where the file does not say."""
    tool: str
    """Name and version of the tool: ``Nsight Compute 2025.3.1.0``."""
    driver: str = ""
    """Driver, or its CUDA version where the file gives only that: ``CUDA 13.0``."""
    date: str = ""
    """UTC day of the recording, as ``YYYY-MM-DD``; empty where the file does not say."""
    command: str = ""
    """Command line of the profiler; empty where the file does not say."""
