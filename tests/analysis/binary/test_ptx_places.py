"""Lines of Python that a PTX text names for its statements."""

import pytest

from cutegen_nb.analysis.binary.ptx_places import PtxPlaces

FILES = ('.file 1 "/home/ada/candidate.py"', '.file 2 "/usr/lib/python3.11/site-packages/cutlass/cute.py"')


@pytest.fixture
def places():
    made = PtxPlaces()
    for line in FILES:
        made.take(line.split())
    return made


def take(places, *lines):
    for line in lines:
        places.take(line.replace(",", "").split())
    return places.place(places.location)


def test_the_innermost_place_outside_a_library_is_the_authors(places):
    inner = ".loc 2 500 9, function_name $L, inlined_at 1 12 5"
    assert take(places, ".loc 1 12 5", inner) == ("/home/ada/candidate.py", 12, 5)


def test_a_library_alone_is_named_where_nothing_else_is_known(places):
    assert take(places, ".loc 2 500 9")[1:] == (500, 9)


def test_a_lost_place_and_lines_of_inline_assembly_change_nothing(places):
    take(places, ".loc 1 12 5")
    assert take(places, ".loc 1 3 0")[1] == 12
    places.inside_asm = True
    assert take(places, ".loc 1 99 1")[1] == 12


def test_no_place_is_no_line():
    assert PtxPlaces().place(()) == ("", 0, 0)
