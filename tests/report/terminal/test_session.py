"""Text of a session: the GPU that times are estimated for, and the end without a kernel."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.estimate import FullSizeSample
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


def test_replies_without_a_kernel_end_with_what_was_wrong_with_them_and_a_next_step():
    refused = replace(SESSION.rounds[0].attempts[0], candidate=None, evaluation=None)
    note = "the last of 3 replies held words and no code"
    asked = replace(SESSION.rounds[0], attempts=(refused,), comparison=None, decisions=(), note=note)
    spent = replace(SESSION, rounds=(asked,), author="openai:m", stopped="the budget of 1 round is spent")
    lines = ending_lines(spent, "relu.html")
    assert f"No kernel came in r0: {note}." in lines
    assert lines[-1].startswith("Next: the report shows each request and reply")
    # A failure of the server ended the session: its reason and its advice are told once.
    failed = replace(spent, rounds=(replace(asked, note="no answer: wait"),), stopped="no answer: wait")
    text = "\n".join(ending_lines(failed, "relu.html"))
    assert text.count("no answer: wait") == 1
    assert "Next:" not in text


def test_a_kernel_without_an_estimate_ends_with_the_reason():
    def ended(missing):
        best = SESSION.best
        evaluation = replace(best.evaluation, full_size=FullSizeSample(missing=missing))
        attempt = replace(best.attempts[-1], evaluation=evaluation)
        sampled = replace(best, attempts=(*best.attempts[:-1], attempt))
        return ending_lines(replace(SESSION, rounds=(*SESSION.rounds[:-1], sampled)), None)

    late = "The sample of kernel kernel_cutlass_relu_kernel_tensorptrf32_0 was not finished in time. It ran."
    lines = ended(late)
    assert "No estimate in r1: The sample of kernel relu_kernel was not finished in time." in lines
    assert "No estimate" not in "\n".join(ended(""))
