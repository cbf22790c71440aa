"""Execution of one kernel launch: program, schedule, barriers, reruns."""
