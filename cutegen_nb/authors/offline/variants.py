"""How far a kernel has been taken: a fold over the strategies applied so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.core.errors import Declined

COALESCED = "coalesced"
VECTORISE = "vectorise-128"
IN_FLIGHT = "vectors-in-flight"
GRID_STRIDE = "grid-stride"
WARP_PER_ROW = "warp-per-row"
CTA_PER_ROW = "cta-per-row"
ONE_PASS = "one-pass"  # noqa: S105 - no password
SPLIT = "split-reduction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Which of the strategies are in force."""

    coalesced: bool = False
    """Neighbouring threads touch neighbouring elements."""
    vectors: bool = False
    """128 bits a load."""
    in_flight: int = 1
    """Vectors (or elements) a thread loads before it uses the first."""
    grid_stride: bool = False
    """CTAs loop over the work."""
    lanes: str = "thread"
    """Who reduces a row: ``thread``, ``warp`` or ``cta``."""
    one_pass: bool = False
    """A row is read once: kept in registers, or its reductions merged."""
    split: bool = False
    """Several CTAs share a row."""


SIMPLEST = Variant()

_STEPS: dict[str, dict[str, object]] = {
    COALESCED: {"coalesced": True},
    VECTORISE: {"coalesced": True, "vectors": True},
    IN_FLIGHT: {"in_flight": 4},
    GRID_STRIDE: {"grid_stride": True},
    WARP_PER_ROW: {"coalesced": True, "lanes": "warp"},
    CTA_PER_ROW: {"coalesced": True, "lanes": "cta"},
    ONE_PASS: {"one_pass": True},
    SPLIT: {"split": True},
}


def fold(start: Variant, applied: tuple[str, ...]) -> Variant:
    """The variant after carrying out strategies by name, oldest first. Raises Declined for an unknown one."""
    variant = start
    for name in applied:
        step = _STEPS.get(name)
        if step is None:
            raise Declined(
                f"the offline author does not know the strategy {name!r}; its menu lists what it can do"
            )
        variant = replace(variant, **step)  # type: ignore[arg-type]
    return variant
