"""Facts that the prompts of a round share, and the revision that it starts from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.ports import Guide, GuideRequest
from cutegen_nb.core.session import Session
from cutegen_nb.prompting.library import PromptLibrary


def no_guide(request: GuideRequest) -> str:  # noqa: ARG001 - the port's
    """Guide without any chapter."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """Facts that all prompts of a round share."""

    library: PromptLibrary
    """Prompt templates."""
    session: Session
    """Session with problem, device and the rounds so far."""
    device: Device | None = None
    """Device whose figures are stated; None for the session's. Without a GPU times are estimated for it."""
    floors: tuple[str, ...] = ()
    """Sentences on the least time at the full size."""
    zone: str = ""
    """Sentence on the problem's zone of the roofline and its meaning; empty where no device tells it."""
    ceilings: tuple[str, ...] = ()
    """Lines on the device's peaks at the problem's precision, and on the limits of a multiprocessor."""
    extents: Mapping[str, int] = field(default_factory=lambda: defaultdict(int))
    """Extents at full size that the advice uses, by the names in `analysis/problem/extents.py`."""
    steering: str = ""
    """The person's words for this round; they take precedence over its strategy."""
    diagnosis: tuple[str, ...] = ()
    """Lines on the parent's limit and its cause; shown from PROFILE on."""
    resources: tuple[str, ...] = ()
    """Lines on the parent's registers, spills and occupancy; shown in every stage."""
    scores: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Lines on the outcome of each round's predictions, by the number of the round."""
    guide: Guide = no_guide
    """CuTe DSL guide: sections for a request."""
    knowledge: tuple[str, ...] = ()
    """Lines on strategies that were tried on like problems before, with their effects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentRevision:
    """Revision that a round starts from."""

    revision: str
    """Name of the revision: ``r3``."""
    candidate: Candidate
    """Candidate of the revision."""
    evaluation: Evaluation
    """Evaluation of the revision, with the counters known so far."""
