"""Every verdict that is not a pass has its advice."""

import pytest

from cutegen_nb.core.evaluation import Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.report.terminal.next_steps import next_step


@pytest.mark.parametrize("verdict", [one for one in Verdict if one is not Verdict.PASSED])
def test_a_failure_has_a_next_step(verdict):
    assert next_step(Judged(verdict=verdict))


@pytest.mark.parametrize("reason", NotJudgedReason)
def test_what_could_not_be_judged_has_one_too(reason):
    assert next_step(NotJudged(reason=reason))


def test_a_pass_needs_none_and_no_advice_ends_in_a_full_stop():
    assert next_step(Judged(verdict=Verdict.PASSED)) == ""
    assert not any(next_step(Judged(verdict=one)).endswith(".") for one in Verdict)
