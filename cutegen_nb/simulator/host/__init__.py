"""Host side of the simulator: replacements for the DSL's JIT, the CUDA runtime and driver, and torch.cuda."""
