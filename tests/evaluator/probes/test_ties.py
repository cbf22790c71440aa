"""Equal elements, of which an answer may name another."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import CheckState, Tier
from cutegen_nb.core.finding import Severity
from cutegen_nb.exploits.library import chosen

pytestmark = pytest.mark.slow


def shipped(name):
    return next(item for item in chosen((name,)) if item.name == name)


def judged(judge, name, old="", new=""):
    """A shipped candidate, or the honest one that it becomes by one change."""
    item = shipped(name)
    assert old in item.source
    return judge(item.problem.source, item.source.replace(old, new), Tier.B)


def flags(evaluation):
    return {item.kind for item in evaluation.findings if item.severity is Severity.FLAG}


def ran(evaluation, name):
    return next(item for item in evaluation.checks if item.name == name).state is CheckState.RAN


@pytest.mark.long
def test_an_argmax_that_names_another_of_equal_elements_is_a_flag(judge):
    wrong = judged(judge, "equal_elements")
    assert wrong.passed
    assert "another-of-equals" in flags(wrong)
    right = judged(
        judge, "equal_elements", "if other > best:", "if other > best or (other == best and there < place):"
    )
    assert right.passed, right.summary
    assert "another-of-equals" not in flags(right)
    assert ran(right, "the first of equal elements")
