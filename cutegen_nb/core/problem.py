"""Problems: the reference that a kernel has to reproduce, its sizes and its traced facts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.library import Library


class WorkloadClass(StrEnum):
    """Dominant kind of work of a problem; it selects prompts and strategies."""

    ELEMENTWISE = "element-wise"
    REDUCTION = "reduction"
    SOFTMAX = "softmax"
    NORM = "norm"
    MATMUL = "matrix product"
    LOSS = "loss"
    SCAN = "scan"
    POOLING = "pooling"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    FUSED = "fused"
    OTHER = "other"


class ProblemForm(StrEnum):
    """Form in which the source states the reference."""

    KERNELBENCH = "kernelbench"
    """``Model``, ``get_inputs``, ``get_init_inputs``."""
    FUNCTION = "function"
    """A plain function and example inputs (``get_inputs`` or a list named ``example_inputs``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Source of a reference, exactly as the person gave it."""

    name: str
    """Python identifier, made from the file's name or given."""
    source: str
    """Source text, never rewritten."""
    form: ProblemForm
    """Form of the reference."""
    path: str = ""
    """Path of the file; empty for a string."""
    function: str = ""
    """Name of the reference function, for the FUNCTION form."""
    library: Library = ()
    """Parts that PyTorch may compute beside the kernels; it is no part of the digest."""
    first_line: int = 1
    """Number of the source's first line where a person reads it: 2 below the magic of a cell."""

    @property
    def digest(self) -> str:
        """SHA-256 of the source, hexadecimal."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    def states(self, other: Problem) -> bool:
        """Return whether `other` has the same source and the same library policy."""
        return self.digest == other.digest and self.library == other.library


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Change of one top-level integer literal of the problem for the scaled size."""

    line: int
    """Line of the literal, from 1."""
    column: int
    """Column of the literal, from 0."""
    full: int
    """Value in the file."""
    scaled: int
    """Value on the simulator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Reference traced at one size, without allocating its tensors."""

    graph: Graph
    """Operations, shapes, dtypes."""
    flops: int
    """Floating-point operations; a multiply-add counts two."""
    least_bytes: int
    """Least memory traffic: bytes of inputs and parameters read once and of outputs written once."""
    rewrites: tuple[Rewrite, ...] = ()
    """Literals changed to reach this size; empty at the full size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Result of trying known wrong answers against the comparison."""

    refused: tuple[str, ...] = ()
    """Wrong answers that the comparison rejects, as intended."""
    tightened: tuple[str, ...] = ()
    """Wrong answers that pass on the problem's own inputs, and fail on inputs added for them."""
    would_pass: tuple[str, ...] = ()
    """Wrong answers that pass on every input tried; shown to the person as a warning."""
    added_inputs: tuple[str, ...] = ()
    """Names of the kinds of inputs added to the problem's own."""
    unused: tuple[str, ...] = ()
    """Inputs and parameters that the reference's output does not depend on."""
    not_tried: str = ""
    """Reason why no wrong answer was tried; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts:
    """Facts about a problem from its trace, before any kernel is written."""

    workload_class: WorkloadClass
    """Dominant kind of work."""
    full: Workload
    """Workload at the size in the file, for the roofline and for a GPU."""
    scaled: Workload
    """Workload at the simulator's size; equal to `full` where the file is small enough."""
    dtype: str
    """Computation dtype of the reference: that of its first floating-point input or parameter."""
    parts: tuple[WorkloadClass, ...] = ()
    """For FUSED: the kinds of work in it, the one with the most arithmetic first; empty for other classes."""
    warnings: tuple[str, ...] = ()
    """Warnings for the person: an output that cannot be compared, randomness in the reference …"""
    simulator_warning: str = ""
    """Cost of the simulator's size where it is more than usual; empty elsewhere. No matter on a GPU."""
    admission: Admission | None = None
    """Result of trying wrong answers; None where none was tried."""

    def warnings_on(self, kind: DeviceKind) -> tuple[str, ...]:
        """Warnings that matter on a device of this kind."""
        extra = self.simulator_warning if kind is DeviceKind.SIMULATOR else ""
        return (*self.warnings, extra) if extra else self.warnings
