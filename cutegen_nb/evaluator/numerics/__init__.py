"""Tolerances, error norms between tensors, and patterns of wrong elements."""
