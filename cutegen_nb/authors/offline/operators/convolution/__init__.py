"""Convolutions in one, two and three dimensions, transposed ones included."""
