"""Distributed shared memory of a cluster, and barriers of its CTAs."""
