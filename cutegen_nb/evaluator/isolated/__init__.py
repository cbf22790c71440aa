"""Isolated judgement: a candidate's values judged in a process that it never enters. The evaluator's side."""
