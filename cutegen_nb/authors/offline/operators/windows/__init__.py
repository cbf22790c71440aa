"""Kernels over sliding windows: pooling, and convolution of each channel by itself."""
