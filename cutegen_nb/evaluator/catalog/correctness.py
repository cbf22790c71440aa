"""Checks that a candidate computes the function: tolerances, oracle, and inputs that show small faults."""

from __future__ import annotations

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.catalog.check import Check

_TRIAL = "cutegen_nb.evaluator.trial.trial"
_COMPARING = "cutegen_nb.evaluator.trial.compare"
_INTERCEPTION = "cutegen_nb.evaluator.observe.dispatch_watch"
_HERE = "cutegen_nb.evaluator"

SEEDS = Check(
    name="fresh seeds drawn after the import",
    protocol="F1, F4",
    tier=Tier.A,
    stops="answers kept for known inputs; a seed memo",
    cost="one call a seed",
    where=_TRIAL,
)

CONTRACT = Check(
    name="number, shape and dtype of outputs",
    protocol="F5",
    tier=Tier.A,
    stops="a lazy subclass, a half-precision output, a missing output",
    cost="free",
    where=_COMPARING,
)

VALUES = Check(
    name="values within the element gate and the relative L2 gate",
    protocol="F7, F9",
    tier=Tier.A,
    stops="zeros, a mean, an input handed back, an approximation that a wide tolerance lets pass",
    cost="free",
    where=_COMPARING,
)

ORACLE = Check(
    name="float64 oracle",
    protocol="F9",
    tier=Tier.A,
    stops="a tolerance wider than what a faithful implementation needs",
    cost="one run of the reference",
    where=_COMPARING,
)

POISON = Check(
    name="outputs poisoned",
    protocol="F3",
    tier=Tier.A,
    stops="outputs never written, freed memory of the reference reused",
    cost="free",
    where=_INTERCEPTION,
)

INPUTS_KEPT = Check(
    name="inputs unchanged",
    protocol="F6",
    tier=Tier.A,
    stops="inputs corrupted so that the reference agrees",
    cost="free",
    where=_COMPARING,
)

AGAIN = Check(
    name="candidate, reference, candidate again",
    protocol="F2, W5",
    tier=Tier.A,
    stops="right at the first call only; a result kept by pointer: the second call has fresh memory",
    cost="one call",
    where=_TRIAL,
)

PARAMETERS = Check(
    name="constant parameters redrawn",
    protocol="F14",
    tier=Tier.A,
    stops="affine weights and biases ignored",
    cost="free",
    where=f"{_HERE}.trial.parameters",
)

ADMISSION = Check(
    name="problem admission",
    protocol="F8",
    tier=Tier.A,
    stops="zeros, a copy or a dropped term passing because the problem's inputs cannot tell",
    cost="once a problem",
    where=f"{_HERE}.probes.admission",
)

MORE_SEEDS = Check(
    name="more seeds",
    protocol="F4",
    tier=Tier.B,
    stops="answers that are right for most inputs",
    cost="one call a seed",
    where=_TRIAL,
)

EXACT = Check(
    name="exact integer inputs",
    protocol="F10",
    tier=Tier.B,
    stops="reduced-precision products, a dropped tail of the sum",
    cost="some calls",
    where=f"{_HERE}.probes.exact_integers",
)

STRESS = Check(
    name="stress inputs",
    protocol="F11",
    tier=Tier.B,
    stops="a norm replaced by its expectation, data never read, dispatch on magnitude",
    cost="some calls",
    where=f"{_HERE}.probes.stress",
)

PARTS = Check(
    name="every part of every input",
    protocol="F11, W9",
    tier=Tier.B,
    stops="a quarter of the data never read, a dropped tail of a sum",
    cost="some calls",
    where=f"{_HERE}.probes.input_parts",
)

MATRIX_TYPES = Check(
    name="types of matrix instructions",
    protocol="F9",
    tier=Tier.B,
    stops="TF32 or half precision in a float32 problem",
    cost="free",
    decides=False,
    needs_simulator=True,
    where=f"{_HERE}.probes.mma_types",
)

TIES = Check(
    name="the first of equal elements",
    protocol="F11",
    tier=Tier.B,
    stops="an argmax that names whichever of several equal elements its lanes came upon",
    cost="one call",
    decides=False,
    where=f"{_HERE}.probes.ties",
)

OWN_OUTPUTS = Check(
    name="outputs of the caller's own",
    protocol="F5",
    tier=Tier.B,
    stops="one output buffer for every call, an expanded or lazily negated result",
    cost="some calls",
    where=f"{_HERE}.probes.output_aliasing",
)

STATE = Check(
    name="parameters changed between calls",
    protocol="F14",
    tier=Tier.B,
    stops="answers made of parameters as they once were; running statistics left alone",
    cost="some calls",
    decides=False,
    where=f"{_HERE}.probes.parameter_updates",
)

SHAPES = Check(
    name="other shapes and thresholds of the source",
    protocol="F13",
    tier=Tier.B,
    stops="another path above a size: right when checked, wrong when timed",
    cost="seconds",
    where=f"{_HERE}.probes.shapes",
)
FAULTED = "faults-at-another-shape"
"""Kind of the flag for a kernel that faults at a size it was not written for."""
GUARD = "Guard the access, or have forward raise for shapes that it was not written for."
"""Next step of that flag."""
