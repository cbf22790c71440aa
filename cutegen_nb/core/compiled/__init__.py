"""Text of compiled kernels."""
