"""Hand-written CuTe DSL kernels by workload class: read as text, never imported."""
