"""Catalogue of all checks: name, exploit that it stops, tier, cost.

The entries are plain values, so that listing them imports no torch. Each stands in the module of the question
that it answers, and names the module with the check's code. Numbers are those of the evaluation protocol:
F for computing the right function, W for work done by this kernel, I for the integrity of the harness.
"""

from __future__ import annotations

from cutegen_nb.evaluator.catalog.check import Check
from cutegen_nb.evaluator.catalog.correctness import (
    ADMISSION,
    AGAIN,
    CONTRACT,
    EXACT,
    INPUTS_KEPT,
    MATRIX_TYPES,
    MORE_SEEDS,
    ORACLE,
    OWN_OUTPUTS,
    PARAMETERS,
    PARTS,
    POISON,
    SEEDS,
    SHAPES,
    STATE,
    STRESS,
    TIES,
    VALUES,
)
from cutegen_nb.evaluator.catalog.integrity import HARNESS, OUTSIDE, SETTINGS, THREADS
from cutegen_nb.evaluator.catalog.memory import (
    ASYNC_COPIES,
    BARRIERS,
    CTA_ORDER,
    GUARDS,
    INITCHECK,
    LIMITS,
    MEMCHECK,
    RACECHECK,
    RACES,
    SYNCCHECK,
    UNWRITTEN,
)
from cutegen_nb.evaluator.catalog.work import (
    COMPUTE,
    FLOOR,
    LAUNCHED,
    MANY_CALLS,
    READ,
    RECHECKED,
    SAME_LAUNCHES,
    SAME_STORAGE,
    SECOND_PROCESS,
    TRACE,
    TRANSFERS,
    WRITTEN,
)

CHECKS: tuple[Check, ...] = (
    SEEDS, CONTRACT, VALUES, ORACLE, POISON, INPUTS_KEPT, AGAIN, SAME_STORAGE, COMPUTE, LAUNCHED, WRITTEN,
    READ, TRANSFERS, GUARDS, SAME_LAUNCHES, RACES, ASYNC_COPIES, UNWRITTEN, CTA_ORDER, BARRIERS, LIMITS,
    HARNESS, SETTINGS, THREADS, PARAMETERS, ADMISSION, TRACE, RECHECKED, FLOOR, MORE_SEEDS,
    EXACT, STRESS, TIES, PARTS, MANY_CALLS, OWN_OUTPUTS, STATE, MATRIX_TYPES, SHAPES,
    OUTSIDE, SECOND_PROCESS, MEMCHECK, RACECHECK, INITCHECK, SYNCCHECK,
)  # fmt: skip
"""All checks, in the order of listings."""


MACHINE_CHECKS: dict[str, Check] = {
    "race": RACES,
    "async-hazard": ASYNC_COPIES,
    "uninitialised-read": UNWRITTEN,
    "cta-order": CTA_ORDER,
    "divergent-barrier": BARRIERS,
    "launch-refused": LIMITS,
}
"""Checks of the simulator by the kind of their findings."""


def by_name(name: str) -> Check:
    """Return the check called `name`. Raises KeyError."""
    return {item.name: item for item in CHECKS}[name]
