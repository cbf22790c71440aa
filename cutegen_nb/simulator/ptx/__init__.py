"""PTX text to values. Knows no machine."""
