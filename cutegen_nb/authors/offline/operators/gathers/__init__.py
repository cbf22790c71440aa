"""Operators that fetch each element from another place: padding, flips, rolls, repeats, indexing."""
