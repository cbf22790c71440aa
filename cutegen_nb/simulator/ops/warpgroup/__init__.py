"""Tensor-core products of warp groups (``wgmma``)."""
