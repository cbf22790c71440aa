"""Formatting of figures for people: numbers, times, errors, costs and baselines."""
