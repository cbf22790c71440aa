"""Numbers and stamps as people write them."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.figures.quantity import interval, moment, scaled, share


@pytest.mark.parametrize("stamp", ["2026-11-21T06:10:00Z", "2026-11-21T06:10:00+00:00"])
def test_a_stamp_in_either_spelling_of_utc_is_written_for_people(stamp):
    assert moment(stamp) == "2026-11-21 06:10:00 UTC"


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-21T06:10:00+02:00"])
def test_other_text_is_left_as_it_is(text):
    assert moment(text) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (96, "96 B"), (7.25, "7.25 B"), (1000, "1.00 kB"), (999_600, "1.00 MB"), (-64, "−64 B")],
)
def test_few_bytes_are_written_whole_and_many_in_three_figures(value, text):
    assert scaled(value, "B") == text


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ((1.05, 1.04, 1.06), "1.05× (1.04–1.06)"),
        ((0.989, 0.985, 0.993), "0.989× (0.985–0.993)"),
        ((1.00004, 1.00003, 1.00005), "1.0000× (1.0000–1.0001)"),
        ((32.16, 31.9, 32.4), "32.2× (31.9–32.4)"),
        ((1.0, 1.0, 1.0), "1.00× (1.00–1.00)"),
    ],
)
def test_an_interval_has_the_places_that_tell_its_ends_apart(figures, text):
    assert interval(*figures) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(1.0, "100.0 %"), (0.99956, "99.96 %"), (0.9999999, "99.99 %"), (0.9994, "99.9 %"), (0.0004, "0.04 %")],
)
def test_a_share_of_almost_all_is_not_written_as_all(fraction, text):
    assert share(fraction) == text
