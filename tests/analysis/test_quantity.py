"""Numbers and stamps as people write them."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.quantity import moment


@pytest.mark.parametrize("stamp", ["2026-11-21T06:10:00Z", "2026-11-21T06:10:00+00:00"])
def test_a_stamp_in_either_spelling_of_utc_is_written_for_people(stamp):
    assert moment(stamp) == "2026-11-21 06:10:00 UTC"


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-21T06:10:00+02:00"])
def test_other_text_is_left_as_it_is(text):
    assert moment(text) == text
