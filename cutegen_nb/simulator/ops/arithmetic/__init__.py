"""Integer and floating-point arithmetic, comparison, conversion and bits."""
