"""Target architectures that the simulator supports."""

from __future__ import annotations

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
"""Architectures that kernels may be compiled for, oldest first."""
LARGEST_ARCHITECTURE = "sm_100a"
"""Architecture with the most instructions."""
DEFAULT_ARCHITECTURE = "sm_80"
"""Architecture that a program is compiled for unless another one is given."""


def architecture_for(architecture: str) -> str | None:
    """Architecture of the simulator for that of a GPU, ``sm_90`` → ``sm_90a``; None if it has none such."""
    return next((one for one in ARCHITECTURES if one.removesuffix("a") == architecture), None)
