"""Register values, number formats and exact rounding."""
