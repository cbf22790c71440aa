"""Tensor memory and the products of Blackwell's tensor cores (``tcgen05``)."""
