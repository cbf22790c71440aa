"""CUDA graphs of the simulator: stream capture and replay."""
