"""Likeness of two problems, and of the circumstances of two strategies, from structured facts alone."""

from __future__ import annotations

from cutegen_nb.analysis.estimate.targets import target_of
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.knowledge import ProblemKey, Regime, StrategyRecord
from cutegen_nb.core.strategy import Bound

LEAST_LIKE = 0.4
"""Likeness from which a problem teaches another one."""
_ROWS = frozenset({
    WorkloadClass.REDUCTION, WorkloadClass.SOFTMAX, WorkloadClass.NORM, WorkloadClass.LOSS,
})  # fmt: skip
"""Classes that reduce rows, whose kernels are mapped alike."""
_DOMINANT, _SAME_FAMILY = 0.8, 0.6
"""Likeness of classes: the same dominant part in other graphs; another class that reduces rows."""
_REGIMES = (
    frozenset({
        Regime.FEW_LONG_ROWS, Regime.MANY_LONG_ROWS, Regime.MANY_SHORT_ROWS, Regime.STRIDED_ROWS,
    }),
    frozenset({Regime.SQUARE_PRODUCT, Regime.TALL_PRODUCT, Regime.LONG_K_PRODUCT}),
)  # fmt: skip
"""Regimes that differ in extents and not in kind."""
_NEAR_REGIME, _OTHER_REGIME = 0.6, 0.3
_OF_OPERATORS = _OF_DTYPE = 0.25
"""Shares of the operators and of the dtype in the likeness; the rest is that of class and regime."""
_SAME_WIDTH, _OTHER_WIDTH = 0.5, 0.0
"""Likeness of two dtypes: both of 16 bits, or of different widths."""
_HALVES = frozenset({"float16", "bfloat16"})
_SAME_GENERATION, _OTHER_GENERATION = 0.9, 0.6
_OTHER_BOUND, _UNKNOWN_BOUND = 0.7, 0.85
_ESTIMATED = 0.5
"""Weight of an estimated effect beside a measured one."""


def like(one: ProblemKey, other: ProblemKey) -> float:
    """Return the likeness of two problems, from 0 to 1.

    The product of three factors:

    * class: 1 for the same class; 0.8 for the same dominant part (a product alone, and with an epilogue);
      0.6 for two classes that reduce rows (softmax and norm); else 0.
    * regime: 1 for the same; 0.6 for regimes of one kind (few or many rows; square or tall products);
      0.3 for others.
    * 0.5 + 0.25 × operators + 0.25 × dtype. Operators count the share of common ones (Jaccard: intersection ÷
      union). Dtypes count 1 for the same, 0.5 for two of 16 bits, else 0.

    Below `LEAST_LIKE` nothing is offered: a softmax never teaches a convolution.
    """
    return _classes(one, other) * _regimes(one.regime, other.regime) * _details(one, other)


def _classes(one: ProblemKey, other: ProblemKey) -> float:
    if (one.workload_class, one.dominant) == (other.workload_class, other.dominant):
        return 1.0
    if one.dominant is other.dominant:
        return _DOMINANT
    return _SAME_FAMILY if {one.dominant, other.dominant} <= _ROWS else 0.0


def _regimes(one: Regime, other: Regime) -> float:
    if one is other:
        return 1.0
    return _NEAR_REGIME if any({one, other} <= kind for kind in _REGIMES) else _OTHER_REGIME


def _details(one: ProblemKey, other: ProblemKey) -> float:
    every = {*one.operators, *other.operators}
    common = len(set(one.operators) & set(other.operators)) / len(every) if every else 1.0
    return 1.0 - _OF_OPERATORS * (1.0 - common) - _OF_DTYPE * (1.0 - _dtypes(one.dtype, other.dtype))


def _dtypes(one: str, other: str) -> float:
    if one == other:
        return 1.0
    return _SAME_WIDTH if {one, other} <= _HALVES else _OTHER_WIDTH


def weight(record: StrategyRecord, key: ProblemKey, architecture: str, bound: Bound | None = None) -> float:
    """Return the weight of a record for a problem, from 0 to 1; 0 where the problems are not alike.

    The likeness, times 0.9 for another architecture of the same generation and 0.6 for another generation,
    times 0.5 for an estimate, times 0.7 where the parent was limited otherwise than by `bound`.
    """
    likeness = like(record.problem, key)
    if likeness < LEAST_LIKE:
        return 0.0
    kind = _ESTIMATED if record.estimated else 1.0
    return likeness * kind * _architectures(record.architecture, architecture) * _bounds(record.bound, bound)


def timed_architecture(device: Device) -> str:
    """Return the architecture that times are of: on the simulator that of the GPU they are estimated for."""
    is_gpu = device.kind is DeviceKind.GPU
    return device.architecture if is_gpu else target_of(device).sheet.architecture


def _architectures(one: str, other: str) -> float:
    # ``sm_90a`` is sm_90 with features that only it has.
    first, second = (name.rstrip("abcdefghijklmnopqrstuvwxyz") for name in (one, other))
    if first == second:
        return 1.0
    return _SAME_GENERATION if first[:-1] == second[:-1] else _OTHER_GENERATION


def _bounds(one: Bound | None, other: Bound | None) -> float:
    if one is None or other is None:
        return _UNKNOWN_BOUND
    return 1.0 if one is other else _OTHER_BOUND
