"""The CPU machine for CuTe DSL kernels: PTX in, memory and counts out."""
