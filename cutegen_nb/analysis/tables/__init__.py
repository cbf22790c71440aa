"""Tables of counters, metrics and compiled code, as text cells."""
