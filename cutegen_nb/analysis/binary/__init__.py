"""Readers of compiled kernels (cubins): resources, instructions and line tables, without NVIDIA's tools."""
