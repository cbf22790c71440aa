"""Integers whose products are exact, and the narrow types that they show."""

from __future__ import annotations

import torch

from cutegen_nb.evaluator.numerics.tolerance import find_tolerance
from cutegen_nb.evaluator.probes.exact_integers import _exact, _integers
from cutegen_nb.evaluator.probes.probe import Expected
from cutegen_nb.evaluator.trial.observations import ReferenceOutputs


def test_integers_have_one_bit_more_than_tf32_holds():
    drawn = [torch.randn(64, 64), torch.randn(64, 64)]
    wide, small = _integers(drawn, 0)
    assert float(wide.abs().max()) == 4095.0
    assert set(small.unique().tolist()) == {-1.0, 0.0, 1.0}
    assert _integers(drawn, 2) is None


def _expected(wanted, truth):
    gate = find_tolerance(wanted, truth, 1.0)
    answers = ReferenceOutputs(wanted=(wanted,), truth=(truth,))
    return Expected(answers=answers, gates=(gate,))


def test_where_the_reference_is_exact_nothing_is_tolerated():
    torch.manual_seed(1)
    wide, small = _integers([torch.randn(32, 64), torch.randn(64, 48)], 0)
    exact = _exact(_expected(wide @ small, wide.double() @ small.double()))
    assert [(gate.element, gate.l2) for gate in exact.gates] == [(0.0, 0.0)]


def test_a_reference_that_rounds_is_no_measure_of_exactness():
    thirds = torch.arange(1.0, 9.0) / 3
    assert (
        _exact(_expected(thirds, torch.arange(1.0, 9.0).double() / 3))
        == "the reference is not exact on integers"
    )
    assert _exact(_expected(torch.full((4,), 0.5), torch.full((4,), 0.5).double())) == (
        "the reference is not exact on integers"
    )
