"""Commands for a lecturer."""
