"""Full-size call of a candidate on the simulator: virtual tensors, lazy allocation, the evaluator's side."""
