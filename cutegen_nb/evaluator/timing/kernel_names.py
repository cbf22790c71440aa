"""Kernel names: the DSL's own, and those of PyTorch, libraries and the driver."""

from __future__ import annotations

LIBRARIES = ("at::", "cublas", "cutlass::", "cudnn", "memcpy", "memset", "nvjet", "triton_")
"""Parts of the names of PyTorch's, the libraries' and the driver's own kernels, in lower case."""

DSL = "kernel_cutlass_"
"""Prefix of the name of each kernel that the DSL compiles, whatever its function is called."""


def is_library_kernel(name: str) -> bool:
    """Return whether a kernel is PyTorch's, a library's or the driver's, and so no candidate's."""
    return not name.startswith(DSL) and any(part in name.lower() for part in LIBRARIES)
