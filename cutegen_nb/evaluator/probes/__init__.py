"""Checks above tier A: further inputs and calls that a candidate must pass before it may become the best."""
