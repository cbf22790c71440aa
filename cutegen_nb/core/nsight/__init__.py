"""Nsight Compute: its metrics by name, and their counterparts among the simulator's counts."""
