"""What Nsight Compute recorded of kernels, as its files hold it: metrics by name, instructions by offset.

Every reader gives these values (a report file, its CSV pages, NVIDIA's own module), and only
``nsight_profile`` turns them into a ``Profile``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_nb.core.profile import CompiledCode, KernelResources, Metric


class UnreadableReport(ValueError):
    """A file is not what Nsight Compute writes, or of a version that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedInstruction:
    """One machine instruction of a kernel."""

    offset: int
    """Bytes from the beginning of the kernel's code."""
    file: str = ""
    """Source it came from; empty where the kernel was compiled without line information."""
    line: int = 0
    """Line there, from 1; 0 without a file."""
    text: str = ""
    """As the machine's assembler writes it; empty where the reader had no disassembler."""
    counts: dict[str, float] = field(default_factory=dict)
    """By the metric's name: ``inst_executed``, ``memory_l1_wavefronts_shared``."""


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
    """Figures of the whole launch, in base units; text and missing ones are left out."""
    instructions: tuple[RecordedInstruction, ...] = ()
    """In code order; empty without source counters."""
    code: CompiledCode | None = None
    """Its machine code; None where the reader does not get at it."""
    resources: KernelResources | None = None
    """What the machine code's file says the compiler gave it; None where the reader does not get at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What one report holds."""

    kernels: tuple[RecordedKernel, ...]
    """In launch order."""
    device: str
    """``NVIDIA H200``; empty where the file does not say."""
    architecture: str
    """``sm_90``; empty where the file does not say."""
    tool: str
    """``Nsight Compute 2025.3.1.0``."""
    driver: str = ""
    """Driver, or what of it the file tells: ``CUDA 13.0``."""
    date: str = ""
    """UTC day it was recorded; empty where the file does not say."""
    command: str = ""
    """Command line of the profiler; empty where the file does not say."""
