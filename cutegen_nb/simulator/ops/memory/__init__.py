"""Loads, stores, moves and atomics."""
