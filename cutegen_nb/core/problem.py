"""A problem: what a kernel has to compute, at which sizes, how precisely."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.graph import Graph


class WorkloadClass(StrEnum):
    """What kind of work dominates a problem; it chooses prompts and strategies."""

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
    """How the source states the reference."""

    KERNELBENCH = "kernelbench"
    """``Model``, ``get_inputs``, ``get_init_inputs``."""
    FUNCTION = "function"
    """A plain function and example inputs (``get_inputs`` or a list named ``example_inputs``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The source of a reference, exactly as the person gave it."""

    name: str
    """A Python identifier made from the file's name, or given."""
    source: str
    """The text, never rewritten."""
    form: ProblemForm
    """How the reference is stated."""
    path: str = ""
    """Where it was read; empty for a string."""
    function: str = ""
    """Name of the reference function, for the FUNCTION form."""

    @property
    def digest(self) -> str:
        """SHA-256 of the source, hexadecimal."""
        return hashlib.sha256(self.source.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """One integer literal at the top level of the problem and what it becomes at the scaled size."""

    line: int
    """Line of the literal, from 1."""
    column: int
    """Column of the literal, from 0."""
    full: int
    """Its value in the file."""
    scaled: int
    """Its value on the simulator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The reference traced at one size. Nothing of it was allocated."""

    graph: Graph
    """Operations, shapes, dtypes."""
    flops: int
    """Floating-point operations; a multiply-add counts two."""
    least_bytes: int
    """Inputs and parameters read once and outputs written once."""
    rewrites: tuple[Rewrite, ...] = ()
    """Literals changed to reach this size; empty at the full size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether the comparison tells right from wrong: wrong answers were tried against it."""

    refused: tuple[str, ...] = ()
    """Wrong answers that the comparison refuses, as it must."""
    tightened: tuple[str, ...] = ()
    """Wrong answers that passed on the problem's own inputs and fail on inputs that were added for it."""
    would_pass: tuple[str, ...] = ()
    """Wrong answers that pass whatever was tried: a person should know."""
    added_inputs: tuple[str, ...] = ()
    """Names of the kinds of inputs added to the problem's own."""
    unused: tuple[str, ...] = ()
    """Inputs and parameters on which the reference's output does not depend."""
    not_tried: str = ""
    """Why nothing was tried; empty where it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts:
    """What is known of a problem before any kernel is written."""

    workload_class: WorkloadClass
    """What kind of work dominates."""
    full: Workload
    """At the size in the file: the roofline and a GPU use this."""
    scaled: Workload
    """At the size the simulator runs; the same object's values as `full` where the file is small enough."""
    dtype: str
    """Computation dtype of the reference (that of its first floating-point input or parameter)."""
    parts: tuple[WorkloadClass, ...] = ()
    """For FUSED: the kinds of work in it, that with the most arithmetic first; empty for any other class."""
    warnings: tuple[str, ...] = ()
    """What a person should know: an output that cannot be compared, randomness in the reference …"""
    admission: Admission | None = None
    """What wrong answers the comparison refuses; None where that was never looked at."""
