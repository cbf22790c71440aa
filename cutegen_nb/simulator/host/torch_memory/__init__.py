"""Memory of torch tensors: where it lies, who read it and who wrote it."""
