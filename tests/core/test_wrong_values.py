"""Every pattern of wrong values has a usual cause that the author is told."""

import pytest

from cutegen_nb.core.wrong_values import WrongKind
from cutegen_nb.evaluator.numerics.error_pattern import _HINTS


@pytest.mark.parametrize("kind", WrongKind)
def test_each_kind_has_a_hint(kind):
    assert _HINTS[kind]


def test_kinds_have_words_of_their_own():
    assert len({kind.value for kind in WrongKind}) == len(WrongKind)
