"""Test doubles shipped with the package: a scripted model, a fixed clock, a recorded evaluator."""

from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel

__all__ = ["FixedClock", "RecordedEvaluator", "ScriptedModel"]
