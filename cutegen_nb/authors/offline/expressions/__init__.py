"""Expression trees for one element of a kernel, and their text in CuTe DSL."""
