"""Checkers of a launch: data races, uninitialised reads, asynchronous copies, order of CTAs."""
