"""Reports of whole programs on the simulator, and of profiles."""
