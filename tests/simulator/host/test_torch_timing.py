"""Times that nobody measured: finite, marked, and no figure is made of them."""

PROGRAM = "times"


def test_no_time_passes_for_a_figure(outcome):
    assert outcome == "ok", outcome
