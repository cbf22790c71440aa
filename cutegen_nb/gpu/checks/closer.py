"""What follows when every seed is right: the tiers above A, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.gpu.record import Ending, Stage
from cutegen_nb.gpu.trial import Trial

Closer = Callable[[Trial], Ending | None]
"""One check: an outcome where it decides against the candidate."""


def look_closer(trial: Trial, module: ModuleType, seeds: Sequence[int], stage: Stage) -> Ending | None:
    """Run the checks of the task's tier, in order, until one decides; the candidate is timed in between.

    `module` is the candidate's, for building it at other sizes.
    """
    return None
