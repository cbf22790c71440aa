"""Requests about one candidate, as they travel from the evaluator to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.graph import Value
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.core.tolerance import Tolerance

FULL_SIZE_STAGE = "calling the candidate at full size"
"""Progress message while a candidate is sampled at full size."""
RUNNING_WITH = "running with "
"""Beginning of the stage at another shape; the size in words follows: ``61 made 60``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """Everything that a worker is told about one candidate; the codec writes and reads it."""

    problem: Problem
    """The reference."""
    rewrites: tuple[Rewrite, ...]
    """Rewritten literals of the problem's source; empty at full size."""
    source: str
    """Text of the candidate's file."""
    digest: str
    """SHA-256 of the text."""
    tolerances: tuple[Tolerance, ...]
    """Tolerances of the outputs, found at the problem's admission; empty if that found none."""
    baselines: tuple[str, ...]
    """Baselines to time on a GPU: ``eager``, ``torch.compile``."""
    longest_sum: int
    """Terms of the longest sum behind an output."""
    least_bytes: int
    """Bytes of the inputs and the outputs at full size."""
    flops: int
    """Floating-point operations of the reference at full size."""
    peak_flops: float
    """Highest dense product rate of the device in FLOP/s; 0.0 if it was not measured."""
    noise_fraction: float | None
    """Noise of a baseline against itself in the session's first timing; None before that."""
    deadline_s: float
    """Seconds after which the worker is ended."""
    tier: Tier
    """Depth of the checks."""
    higher_tiers_s: float
    """Seconds after which no further check above tier A begins."""
    exact: bool
    """True if the reference maps integers to integers."""
    added_inputs: tuple[str, ...]
    """Names of the input variants that the problem's admission added."""
    only_if_faster: bool
    """True if the checks above tier A are left out for a candidate that is no faster than the rival."""
    rival_source: str = ""
    """Source of the best candidate so far, timed in the same turns; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullSizeRequest:
    """Everything that a worker is told for one call of a candidate at the problem's full size."""

    problem: Problem
    """The reference."""
    rewrites: tuple[Rewrite, ...]
    """Rewritten literals of the scaled size, whose values the full size repeats."""
    source: str
    """Text of the candidate's file."""
    digest: str
    """SHA-256 of the text."""
    inputs: tuple[Value, ...]
    """Tensor inputs at full size; their paths are positions among the arguments."""
    scalars: tuple[tuple[int, int | float | bool], ...]
    """Inputs that are numbers: position and value."""
    deadline_s: float
    """Seconds after which the worker is ended."""
