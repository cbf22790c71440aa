"""The architectures that the simulator is held to."""

from __future__ import annotations

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a")
"""What kernels may be compiled for, oldest first."""
DEFAULT_ARCHITECTURE = "sm_80"
"""What a program is compiled for where nothing says."""
