"""Scans: cumulative sums and products, with the flips, shifts and masks around them."""
