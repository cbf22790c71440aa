"""Exercises of the lessons as data, and the marks that an evaluation of an answer earns."""
