"""Bottleneck analysis: the bound of a kernel, its likely causes, and strategies that answer them."""
