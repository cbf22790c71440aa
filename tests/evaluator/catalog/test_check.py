"""Entries of the catalogue: a flag decides nothing, and what cannot run says what does instead."""

import pytest

from cutegen_nb.evaluator.catalog.catalog import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_runs_somewhere_and_numbers_its_protocol(check):
    assert not (check.needs_gpu and check.needs_simulator)
    assert all(part[0].isalpha() and part[1:].isdigit() for part in check.protocol.replace(",", " ").split())
