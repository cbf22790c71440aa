"""Figures of a round as text, and dashes for those it does not have."""

from dataclasses import replace

from cutegen_nb.analysis.history.row_figures import counted_figures, speedup_text, timed_figures
from cutegen_nb.analysis.history.summary import rows
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing.examples import session_of


def row():
    return rows(session_of(Relation.FIRST))[0]


def test_what_a_round_does_not_have_is_a_dash():
    bare = replace(
        row(), median_ms=None, speedup=None, sol_fraction=None, estimated_s=None, gmem_sectors=None,
        warp_instructions=None, moved_over_least=None,
    )  # fmt: skip
    assert counted_figures(bare) == ("–", "–", "–", "–")
    assert timed_figures(bare) == ("–", "–", "–")


def test_a_latency_stands_with_its_gain_and_over_what():
    timed = replace(row(), median_ms=0.5, speedup=2.0, speedup_low=1.9, speedup_high=2.1, sol_fraction=0.5)
    latency, gain, roof = timed_figures(timed, "eager")
    assert (latency, roof) == ("500 µs", "50.0 %")
    assert gain == f"{speedup_text(timed)} eager"
    assert speedup_text(replace(timed, speedup_low=None)) == ""


def test_a_kernel_that_launched_nothing_has_no_ratio_of_bytes():
    assert counted_figures(replace(row(), gmem_sectors=0, moved_over_least=0.0))[1:] == ("0", "1,000", "–")
