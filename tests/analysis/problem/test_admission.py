"""A problem's weaknesses in words, and references that keep integers."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.problem.admission import admission_text
from cutegen_nb.analysis.problem.exactness import integers_stay_integers
from cutegen_nb.core.problem import Admission


@pytest.mark.parametrize(
    ("admission", "said"),
    [
        (None, ""),
        (Admission(refused=("zeros",)), ""),
        (Admission(not_tried="the reference raised"), ("Wrong answers were not tried against the comparison: "
         "the reference raised.")),
        (Admission(would_pass=("zeros", "ones")), "These wrong answers would pass: zeros; ones."),
        (Admission(unused=("input 1", "bias")), "The answer hardly depends on input 1, bias."),
        (
            Admission(would_pass=("ones",), tightened=("zeros",), added_inputs=("signs", "large")),
            ("These wrong answers would pass: ones; inputs signs, large are added, because on the problem's own "
            "these wrong answers pass: zeros."),
        ),
    ],
)  # fmt: skip
def test_only_weaknesses_are_told(admission, said):
    assert admission_text(admission) == said


def test_integers_stay_integers_where_no_operation_rounds(workloads):
    assert integers_stay_integers(workloads.product(4, 4, 4, "relu").graph)
    assert integers_stay_integers(workloads.row_sum(4, 4).graph)
    assert not integers_stay_integers(workloads.product(4, 4, 4, "exp").graph)
    assert not integers_stay_integers(workloads.softmax(4, 4).graph)
    assert not integers_stay_integers(workloads.of([], []).graph)
