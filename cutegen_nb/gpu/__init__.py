"""Evaluation in a child process: with the simulator's bridge the only part that imports torch and the DSL."""
