"""One case for the evaluator: a candidate with its settings, number of seeds and time limits."""

from __future__ import annotations

import dataclasses

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts, Workload
from cutegen_nb.evaluator.problem_study import KnownProblem

SEEDS_ON_GPU = {Tier.A: 5, Tier.B: 10, Tier.C: 10}
"""Number of input seeds on a GPU, by tier."""
SEEDS_ON_SIMULATOR = {Tier.A: 3, Tier.B: 4, Tier.C: 6}
"""Number of input seeds on the simulator, by tier: fewer, since a kernel runs for seconds there."""
LEAN_SEEDS = {Tier.A: 3, Tier.B: 3, Tier.C: 5}
"""Number of input seeds on a GPU above `_LEAN_BYTES`, by tier, since comparing takes longer than running."""
_LEAN_BYTES = 64 << 20
"""Bytes of inputs and outputs above which `LEAN_SEEDS` apply."""
HIGHER_TIERS_ON_GPU_S = {Tier.A: 0.0, Tier.B: 90.0, Tier.C: 120.0}
"""Bound in seconds on all checks above tier A together on a GPU, many times what they need.

The number of calls that these checks make follows from the work of one call. The deadline of the worker is
extended by 1.5 times the bound.
"""
HIGHER_TIERS_ON_SIMULATOR_S = {Tier.A: 0.0, Tier.B: 240.0, Tier.C: 360.0}
"""The same bound in seconds on the simulator."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCase:
    """Candidate to judge, with the settings of its evaluation."""

    problem: Problem
    candidate: Candidate
    known: KnownProblem
    """Facts of the problem."""
    device: Device
    """Device that the candidate runs on."""
    tier: Tier
    """Tier of the checks to run."""
    rival: Candidate | None
    """Candidate that is timed beside this one; None for none."""
    only_if_faster: bool
    """True if the checks above tier A are skipped for a candidate that is no faster than `rival`."""
    progress: Progress
    """Callback for the current stage."""

    @property
    def facts(self) -> ProblemFacts:
        """Trace and admission of the problem."""
        return self.known.facts

    @property
    def simulated(self) -> bool:
        """True if the candidate runs on the simulator."""
        return self.device.kind is DeviceKind.SIMULATOR

    @property
    def workload(self) -> Workload:
        """Problem at the size that runs on this device."""
        return self.facts.scaled if self.simulated else self.facts.full

    @property
    def added_inputs(self) -> tuple[str, ...]:
        """Kinds of inputs that the problem needed beside its own to be admitted."""
        return self.facts.admission.added_inputs if self.facts.admission else ()

    @property
    def higher_tiers_s(self) -> float:
        """Bound in seconds on all checks above tier A together."""
        return (HIGHER_TIERS_ON_SIMULATOR_S if self.simulated else HIGHER_TIERS_ON_GPU_S)[self.tier]

    def seed_count(self, chosen: int | None) -> int:
        """Number of input seeds; `chosen` is a person's number for tier A, None for the default."""
        if chosen is not None:
            return chosen if self.tier is Tier.A else 2 * chosen
        if self.simulated:
            return SEEDS_ON_SIMULATOR[self.tier]
        return (LEAN_SEEDS if self.workload.least_bytes > _LEAN_BYTES else SEEDS_ON_GPU)[self.tier]

    def spares(self, found: Evaluation) -> bool:
        """Return whether the checks above tier A may be left out.

        They may for a candidate that the worker timed as no faster than the rival, since nothing is built on
        it. Any other result at tier A still gets the checks of the requested tier.
        """
        timed = found.timing
        return self.only_if_faster and found.tier is Tier.A and timed is not None and timed.no_faster
