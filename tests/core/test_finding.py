"""Flags that only a person may approve are those that checks can raise."""

from pathlib import Path

import pytest

import cutegen_nb
from cutegen_nb.core.finding import ACCUSING, Finding, Severity

PACKAGE = Path(cutegen_nb.__file__).parent


@pytest.fixture(scope="module")
def judging():
    """Source of everything that raises findings."""
    folders = (PACKAGE / "evaluator", PACKAGE / "analysis" / "source")
    return "\n".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))


@pytest.mark.parametrize("kind", sorted(ACCUSING))
def test_each_accusing_kind_is_one_that_some_check_raises(judging, kind):
    assert f'"{kind}"' in judging


def test_a_finding_decides_unless_it_is_a_flag():
    assert Finding(kind="race", message="Two threads write.").severity is Severity.DECIDES
