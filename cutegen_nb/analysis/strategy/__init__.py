"""Traits of a kernel, conditions of its problem, and the strategies that remain; pure functions only."""
