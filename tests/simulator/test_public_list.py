"""The committed list of public programs."""

import re
from pathlib import Path

import pytest

from tests.simulator import public_programs as public

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "programs.md"


def test_each_program_is_named_by_repository_commit_and_path():
    repositories = public.repositories()
    programs = public.programs()
    assert len({(item.repository, item.path) for item in programs}) >= 100
    assert len({item.name for item in programs}) == len(programs)
    assert {item.repository for item in programs} == set(repositories)
    for repository in repositories.values():
        assert re.fullmatch("[0-9a-f]{40}", repository.commit)
        assert repository.licence


def test_each_outcome_has_a_meaning_and_any_but_a_pass_says_why():
    for item in public.programs():
        assert item.outcome in public.OUTCOMES
        assert item.outcome == public.PASSES or item.words, item.name


@pytest.mark.parametrize(("family", "aim"), [("sm_80 to sm_90", 0.95), ("sm_100 to sm_120", 0.70)])
def test_enough_programs_pass(family, aim):
    assert public.passing(item for item in public.programs() if public.family(item) == family) >= aim


def test_the_page_has_the_list_s_own_table():
    assert public.table() in PAGE.read_text()
