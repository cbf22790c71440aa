"""Kernel files are compared by their code, whatever their titles and comments say."""

from dataclasses import replace

from cutegen_nb.authors.offline.same_code import same_code, twin
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing.examples import session_of

SOURCE = '"""relu: vectors."""\n\nVEC = 4  # elements\n'


def test_titles_and_comments_make_no_difference_and_constants_do():
    assert same_code(SOURCE, "VEC = 4\n")
    assert not same_code(SOURCE, SOURCE.replace("4", "2"))


def test_a_twin_is_the_first_round_with_the_code_and_a_broken_edit_is_none():
    session = session_of(Relation.FIRST, Relation.LESS_WORK, Relation.LESS_WORK)
    sources = ("def broken(:\n", SOURCE, SOURCE)
    rounds = tuple(
        replace(item, attempts=(replace(item.attempts[0], candidate=Candidate(source=source, author="a")),))
        for item, source in zip(session.rounds, sources, strict=True)
    )
    session = replace(session, rounds=rounds)
    assert twin("VEC = 4\n", session).number == 1
    assert twin("VEC = 8\n", session) is None
