"""The table of documented instructions: each once, in one chapter."""

from collections import Counter

import pytest

from cutegen_nb.simulator.isa.table import CHAPTERS


def test_no_row_stands_twice():
    rows = Counter(row for rows in CHAPTERS.values() for row in rows)
    assert [row for row, number in rows.items() if number > 1] == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_row_names_an_architecture_and_its_example_uses_the_instruction(chapter):
    for name, since, example, *_ in CHAPTERS[chapter]:
        assert since.startswith("sm_"), name
        assert not example or name.split(".")[0] in example, name
