"""Values of a search over many kernels: populations, knowledge of earlier sessions, campaigns."""
