from __future__ import annotations

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.html.session_page import render
from cutegen_nb.report.html.whole_rounds import MOST_WHOLE, whole_rounds
from cutegen_nb.testing.examples import session_of


def long_session():
    """A hundred rounds: the first, gains in r1 and r20, and nothing after."""
    gains = {0: Relation.FIRST, 1: Relation.LESS_WORK, 20: Relation.LESS_WORK}
    return session_of(*(gains.get(number, Relation.MORE_WORK) for number in range(100)))


def test_a_short_session_is_shown_whole():
    assert whole_rounds(session_of(Relation.FIRST, Relation.MORE_WORK)) == {0, 1}


def test_a_long_session_keeps_the_first_the_improvements_and_the_newest():
    shown = whole_rounds(long_session())
    assert len(shown) == MOST_WHOLE
    assert {0, 1, 20, 99, 98} <= shown
    assert 2 not in shown


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("r3", {3}),
        ("3,r7", {3, 7}),
        ("r10-r12, r20", {10, 11, 12, 20}),
        ("r98-r200", {98, 99}),
        ("all", set(range(100))),
    ],
)
def test_revisions_that_are_asked_for_are_whole(asked, shown):
    assert whole_rounds(long_session(), asked) == shown


@pytest.mark.parametrize("asked", ["r100", "best", "r7-r3", "r1,,r2"])
def test_what_names_no_revision_is_refused_with_those_there_are(asked):
    with pytest.raises(UsageError, match="which has r0 to r99"):
        whole_rounds(long_session(), asked)


@pytest.mark.long
def test_the_page_says_how_the_other_rounds_are_shown():
    page = render(long_session())
    assert "40 of 100 rounds are shown with their source and figures" in page
    assert "cutegen-nb report relu --whole r2</code>" in page
    assert "--whole" not in render(long_session(), "all")
