"""Whose a kernel is, by its name."""

from __future__ import annotations

LIBRARIES = ("at::", "cublas", "cutlass::", "cudnn", "memcpy", "memset", "nvjet", "triton_")
"""Parts of the names of PyTorch's, the libraries' and the driver's own kernels, in lower case."""

DSL = "kernel_cutlass_"
"""How the DSL begins the name of each kernel that it compiles, whatever its function is called."""


def is_a_librarys(name: str) -> bool:
    """Whether a kernel is PyTorch's, a library's or the driver's, and so no candidate's."""
    return not name.startswith(DSL) and any(part in name.lower() for part in LIBRARIES)
