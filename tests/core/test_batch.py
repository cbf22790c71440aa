"""Jobs for another machine, told apart by what they ask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.batch import Job
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.testing import examples

PROBLEM = examples.relu_problem()
KERNEL, OTHER = (Candidate(source=source, author="test") for source in ("a", "b"))
JOB = Job(session="relu", revision="r1", problem=PROBLEM, candidate=KERNEL)


@pytest.mark.parametrize(
    "changed",
    [
        {"candidate": OTHER}, {"rival": OTHER}, {"tier": Tier.C}, {"rival": KERNEL},
        {"problem": replace(PROBLEM, source="other")},
        {"problem": replace(PROBLEM, library=(LibraryFamily.CONV,))},
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_asked_is_part_of_a_jobs_digest(changed):
    assert replace(JOB, **changed).digest != JOB.digest


def test_who_asks_is_no_part_of_it():
    other = replace(JOB, session="gelu", revision="r9", candidate=replace(KERNEL, author="person:ada"))
    assert other.digest == JOB.digest


def test_a_problem_states_another_with_the_same_source_and_policy():
    assert PROBLEM.states(replace(PROBLEM, name="other", path="elsewhere.py"))
    assert not PROBLEM.states(replace(PROBLEM, library=(LibraryFamily.CONV,)))
    assert not PROBLEM.states(replace(PROBLEM, source="other"))
    assert PROBLEM.digest == replace(PROBLEM, library=(LibraryFamily.CONV,)).digest
