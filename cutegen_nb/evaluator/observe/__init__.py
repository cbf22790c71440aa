"""Observation of candidate code while it runs: operators, memory, process state."""
