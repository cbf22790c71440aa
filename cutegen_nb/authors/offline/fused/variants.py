"""Kernel variants: the optimisations in force after a sequence of strategies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.core.errors import Declined

# Names of the strategies.
COALESCED = "coalesced"
VECTORISE = "vectorise-128"
IN_FLIGHT = "vectors-in-flight"
GRID_STRIDE = "grid-stride"
WARP_PER_ROW = "warp-per-row"
CTA_PER_ROW = "cta-per-row"
ONE_PASS = "one-pass"  # noqa: S105 - no password
SPLIT = "split-reduction"
ON_CHIP = "row-in-shared-memory"
CLUSTER = "row-in-cluster"
OVER_GRID = "row-over-grid"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelVariant:
    """Set of optimisations in force."""

    coalesced: bool = False
    """True if neighbouring threads touch neighbouring elements."""
    vectors: bool = False
    """True for loads and stores of 128 bits."""
    in_flight: int = 1
    """Number of vectors (or elements) that a thread loads before it uses the first."""
    grid_stride: bool = False
    """True if CTAs loop over the work."""
    lanes: str = "thread"
    """Threads that share a row: ``thread``, ``warp`` or ``cta``."""
    one_pass: bool = False
    """True if a row is read once: kept in registers, or its reductions merged."""
    split: bool = False
    """True if several CTAs share a row."""
    on_chip: bool = False
    """True if shared memory keeps a row between its passes."""
    over_grid: bool = False
    """True if the CTAs that keep a row are a part of all that the GPU runs at once, not a cluster."""


SIMPLEST = KernelVariant()
"""Variant without any optimisation."""

_STEPS: dict[str, dict[str, object]] = {
    COALESCED: {"coalesced": True},
    VECTORISE: {"coalesced": True, "vectors": True},
    IN_FLIGHT: {"in_flight": 4},
    GRID_STRIDE: {"grid_stride": True},
    WARP_PER_ROW: {"coalesced": True, "lanes": "warp"},
    CTA_PER_ROW: {"coalesced": True, "lanes": "cta"},
    ONE_PASS: {"one_pass": True},
    SPLIT: {"split": True},
    ON_CHIP: {"coalesced": True, "lanes": "cta", "vectors": True, "on_chip": True},
    CLUSTER: {"coalesced": True, "lanes": "cta", "vectors": True, "on_chip": True},
    OVER_GRID: {"coalesced": True, "lanes": "cta", "vectors": True, "on_chip": True, "over_grid": True},
}
"""Changes of the variant by strategy name."""


KNOWN = frozenset(_STEPS)
"""Names of all strategies for loops."""


def fold(start: KernelVariant, applied: tuple[str, ...]) -> KernelVariant:
    """Apply strategies by name to a variant, oldest first. Raises Declined for an unknown name."""
    variant = start
    for name in applied:
        step = _STEPS.get(name)
        if step is None:
            raise Declined(
                f"the offline author does not know the strategy {name!r}; its menu lists what it can do"
            )
        variant = replace(variant, **step)  # type: ignore[arg-type]
    return variant
