"""Frozen values and protocols. Standard library only; imports nothing else of the package."""
