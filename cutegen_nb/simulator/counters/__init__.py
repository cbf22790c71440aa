"""Counters of a launch: instructions by pipe, memory traffic, bank conflicts, load-to-use distances."""
