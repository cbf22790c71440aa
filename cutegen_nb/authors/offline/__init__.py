"""The offline author: writes CuTe DSL kernels from a traced graph, with no network and no model."""
