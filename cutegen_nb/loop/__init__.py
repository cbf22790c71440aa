"""Refinement loop: rounds, sessions, stages, stopping rules and approval."""
