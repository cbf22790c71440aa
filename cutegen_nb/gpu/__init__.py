"""Evaluation in a child process: the only part, with the simulator's bridge, that imports torch and the DSL."""
