"""Counts of a launch at its real size, from a sample of its CTAs whose long loops are cut short."""
