"""Refine CuTe DSL kernels round by round, with a language model and a person, on a GPU or without one."""

__version__ = "0.1.0"
