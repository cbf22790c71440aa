"""Kernels of single operators beside products and loops: convolutions, windows, scans, attention."""
