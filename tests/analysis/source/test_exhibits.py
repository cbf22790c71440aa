"""Evidence of an accusation as lines of text."""

from __future__ import annotations

from cutegen_nb.analysis.source.exhibits import exhibit_lines, exhibit_parts
from cutegen_nb.core.finding import Exhibit

WHOLE = Exhibit(
    kind="kept-answer", statement="The same output for other inputs.", inputs=("x = 1",), outputs=("y = 2",),
    expected=("y = 3",), trace=tuple(f"event {number}" for number in range(14)), addresses=("0x10",),
    lines=(3, 5),
)  # fmt: skip


def test_every_part_is_told_and_a_long_trace_is_cut():
    lines = exhibit_lines(WHOLE)
    assert lines[0] == "evidence (kept-answer): The same output for other inputs."
    assert lines[1:8] == (
        "  inputs:", "    x = 1", "  the candidate gave:", "    y = 2", "  the reference gives:", "    y = 3",
        "  what ran:",
    )  # fmt: skip
    assert lines[19:] == ("    event 11", "    … 2 more", "  memory:", "    0x10", "  source: lines 3 to 5")


def test_empty_parts_are_left_out():
    assert exhibit_lines(Exhibit(kind="k", statement="It did.")) == ("evidence (k): It did.",)
    assert exhibit_lines(Exhibit(kind="k", statement="It did.", lines=(3, 3)))[1] == "  source: line 3"
    assert exhibit_parts(Exhibit(kind="k", statement="It did.", trace=("a",))) == (("What ran", ("a",)),)
