"""Source positions of traced operations: looked up once for each instruction, and still those of the DSL."""

from __future__ import annotations

import inspect

import pytest

from cutegen_nb.simulator.host import source_positions


@pytest.fixture
def looked_up():
    """The lookup under test, and the line numbers that it has looked up for itself."""
    lines = []

    def look_up(frame):
        lines.append(frame.f_lineno)
        return inspect.getframeinfo(frame)

    return source_positions.kept(look_up), lines


def test_an_instruction_is_looked_up_once_and_each_has_its_own_position(looked_up):
    look_up, lines = looked_up
    found = [[look_up(inspect.currentframe()), look_up(inspect.currentframe())] for _ in range(3)]
    assert len(lines) == 2
    assert found[0] == found[1] == found[2]
    assert found[0][0].positions.col_offset < found[0][1].positions.col_offset


def test_functions_of_equal_code_keep_their_own_files(looked_up):
    look_up, _ = looked_up
    names = {"look_up": look_up, "inspect": inspect}
    text = "found = look_up(inspect.currentframe())"
    for file in ("one.py", "two.py"):
        exec(compile(text, file, "exec"), names)
        assert names["found"].filename == file


def test_an_answer_for_a_whole_code_object_is_looked_up_once():
    asked = []
    look_up = source_positions.kept(asked.append, by_instruction=False)

    def another():
        look_up(inspect.currentframe())

    for _ in range(2):
        look_up(inspect.currentframe())
        look_up(inspect.currentframe())
        another()
    assert len(asked) == 2


def test_no_more_are_kept_than_the_limit(looked_up, monkeypatch):
    monkeypatch.setattr(source_positions, "_MOST", 1)
    look_up, lines = looked_up
    for _ in range(2):
        look_up(inspect.currentframe())
        look_up(inspect.currentframe())
    assert len(lines) == 4
