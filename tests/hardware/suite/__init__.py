"""Small kernels whose results on a real GPU are recorded, and compared with the simulator's."""
