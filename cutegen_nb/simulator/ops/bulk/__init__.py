"""Bulk copies between global and shared memory by TMA."""
