"""Judging of one candidate, from its import to the verdict."""
