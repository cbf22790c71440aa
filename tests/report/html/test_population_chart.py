"""The chart of a population."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.html.population_chart import population_chart
from cutegen_nb.testing.examples import evolved_session, session_of


@pytest.fixture(scope="module")
def evolved():
    return evolved_session()


def test_the_chart_has_a_mark_for_each_kernel_that_passed(evolved):
    chart = population_chart(evolved)

    assert [words[:2] for words in re.findall(r"<title>(r\d[^<]*)</title>", chart)] == ["r0", "r1", "r2"]
    assert "Speed of the kernels of relu by epoch" in chart


def test_a_population_in_which_nothing_passed_has_no_chart(evolved):
    bare = tuple(replace(item, attempts=(), comparison=None) for item in evolved.rounds)

    assert population_chart(replace(evolved, rounds=bare)) == ""
    assert population_chart(session_of(Relation.FIRST)) != ""
