"""Values of a search over many kernels: comparisons, populations, knowledge of sessions, campaigns."""
