"""Every check: what it is called, which exploit it stops, when it runs, what it costs.

Plain values, so that listing them imports no torch.  An entry stands in the module of the question that it
answers, the check's code in the module that the entry names.  Protocol numbers are those of the evaluation
protocol (F: does it compute the function, W: did this kernel do the work, I: is the harness still itself).
"""

from __future__ import annotations

from cutegen_nb.gpu.checks.registry.check import Check
from cutegen_nb.gpu.checks.registry.function import (
    ADMISSION,
    AGAIN,
    CONTRACT,
    EXACT,
    INPUTS_KEPT,
    LAYOUTS,
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
from cutegen_nb.gpu.checks.registry.harness import HARNESS, OUTSIDE, SETTINGS, THREADS
from cutegen_nb.gpu.checks.registry.memory import (
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
from cutegen_nb.gpu.checks.registry.work import (
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
    EXACT, STRESS, TIES, PARTS, MANY_CALLS, OWN_OUTPUTS, STATE, MATRIX_TYPES, LAYOUTS, SHAPES,
    OUTSIDE, SECOND_PROCESS, MEMCHECK, RACECHECK, INITCHECK, SYNCCHECK,
)  # fmt: skip
"""In the order in which they are listed."""


MACHINE_CHECKS: dict[str, Check] = {
    "race": RACES,
    "async-hazard": ASYNC_COPIES,
    "uninitialised-read": UNWRITTEN,
    "cta-order": CTA_ORDER,
    "divergent-barrier": BARRIERS,
    "launch-refused": LIMITS,
}
"""The simulator's checks by the kind of their findings."""


def by_name(name: str) -> Check:
    """The check of that name. Raises KeyError."""
    return {item.name: item for item in CHECKS}[name]
