"""Estimate of a kernel's time on a named GPU, from counts at full size; pure functions, nothing is run."""
