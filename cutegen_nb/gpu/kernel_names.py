"""Whose a kernel is, by its name."""

from __future__ import annotations

LIBRARIES = ("at::", "cublas", "cutlass::", "cudnn", "memcpy", "memset", "nvjet", "triton_")
"""Parts of the names of PyTorch's, the libraries' and the driver's own kernels, in lower case."""


def is_a_librarys(name: str) -> bool:
    """Whether a kernel is PyTorch's, a library's or the driver's, and so no candidate's."""
    return any(part in name.lower() for part in LIBRARIES)
