from __future__ import annotations

from cutegen_nb.report.roofline.marks import MOST_SHOWN, Mark, shown


def mark(number: int, *, improved: bool = False, came_from: int | None = None) -> Mark:
    return Mark(
        number=number,
        name=f"r{number}",
        result="",
        intensities=(),
        achieved=None,
        share=None,
        above="",
        came_from=came_from,
        approved=True,
        improved=improved,
    )


def test_a_short_session_is_drawn_whole():
    found = [mark(number, came_from=number - 1 if number else None) for number in range(MOST_SHOWN)]
    assert shown(found) == tuple(found)


def test_of_a_long_session_the_first_the_best_and_the_newest_are_drawn():
    improvements = {3, 50, 90}
    found = [mark(number, improved=number in improvements) for number in range(100)]
    newest = set(range(100 - (MOST_SHOWN - 3), 100))  # 90 is among the newest
    assert [one.number for one in shown(found)] == sorted({0, *improvements, *newest})


def test_no_arrow_comes_from_a_kernel_that_is_not_drawn():
    found = [mark(number, came_from=number - 1 if number else None) for number in range(40)]
    drawn = shown(found)
    assert drawn[1].came_from is None
    assert drawn[2].came_from == drawn[1].number
