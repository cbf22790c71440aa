"""Matrix products with a fused element-wise epilogue."""
