"""Nsight Compute and compute-sanitizer around a candidate that passed."""
