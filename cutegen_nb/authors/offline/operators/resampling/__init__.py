"""Operators that compute elements between those of the input: bilinear interpolation."""
