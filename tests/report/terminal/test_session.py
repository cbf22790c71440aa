"""Text of a session: the GPU that times are estimated for, and the end without a kernel."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.terminal.session import ending_lines, rounds_lines
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST, Relation.ESTIMATED_FASTER)


def test_the_gpu_of_the_estimates_is_named_where_there_are_any():
    first, second = SESSION.rounds
    assert rounds_lines(SESSION)[0].endswith("simulated counts, no measured times")
    reason = replace(second.comparison, reason="Estimated for NVIDIA H200: 2.00× as fast.")
    estimated = replace(SESSION, rounds=(first, replace(second, comparison=reason)))
    assert rounds_lines(estimated)[0].endswith("no measured times, estimates for NVIDIA H200")


def test_a_problem_that_the_offline_author_declines_ends_with_who_else_may_write_it():
    declined = replace(
        SESSION, rounds=(), author="offline", stopped="the offline author does not write aten.sort"
    )
    lines = " ".join(ending_lines(declined, None))
    assert lines.startswith("No round was finished. Ended: the offline author does not write aten.sort")
    assert "Next: use another author (--author manual, or openai with a model)" in lines
    assert "Next:" not in " ".join(ending_lines(replace(declined, author="openai"), None))
    # The loop stores the request that was declined as a round with no kernel.
    refusal = replace(SESSION.rounds[0].attempts[0], candidate=None, reply=None, evaluation=None)
    asked = replace(SESSION.rounds[0], attempts=(refusal,), comparison=None, decisions=())
    lines = " ".join(ending_lines(replace(declined, rounds=(asked,)), None))
    assert "Next: use another author (--author manual, or openai with a model)" in lines
