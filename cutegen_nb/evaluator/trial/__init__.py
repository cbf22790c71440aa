"""Trial of one candidate against its reference on one set of inputs after another."""
