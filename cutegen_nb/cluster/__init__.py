"""Evaluations on a Ray cluster. Ray is imported here only, inside functions: it is an extra."""
