"""Shipped stand-ins for what a test cannot have: a model, a clock, and evaluations recorded before."""

from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel

__all__ = ["FixedClock", "RecordedEvaluator", "ScriptedModel"]
