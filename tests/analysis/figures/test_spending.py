from __future__ import annotations

import pytest

from cutegen_nb.analysis.figures.spending import dollars, usage_words
from cutegen_nb.core.round import Usage


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(), ""),
        (Usage(input_tokens=1000, output_tokens=200), "1,200 tokens"),
        (
            Usage(
                input_tokens=1000, output_tokens=200, cached_tokens=600, reasoning_tokens=50, cost_usd=0.0014
            ),
            "1,200 tokens (600 cached, 50 reasoning), $0.0014",
        ),
        (
            Usage(input_tokens=10, output_tokens=2, estimated=True),
            "12 tokens (partly a guess: the server did not count them)",
        ),
    ],
)
def test_a_usage_is_told_with_what_is_known_of_it(usage, words):
    assert usage_words(usage) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.31, "$0.31"),
        (0.5, "$0.50"),
        (0.02, "$0.02"),
        (0.000104, "$0.0001"),
    ],
)
def test_small_amounts_keep_two_figures(amount, words):
    assert dollars(amount) == words
