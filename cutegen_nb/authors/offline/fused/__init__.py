"""Fused loops over rows and elements: from the plan to the source."""
