"""Target architectures that the simulator supports."""

from __future__ import annotations

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a")
"""Architectures that kernels may be compiled for, oldest first."""
DEFAULT_ARCHITECTURE = "sm_80"
"""Architecture that a program is compiled for unless another one is given."""
