"""Candidates are told apart by their source."""

from __future__ import annotations

from cutegen_nb.core.candidate import Candidate


def test_a_candidates_digest_is_that_of_its_source_alone():
    one = Candidate(source="a", author="offline")

    assert one.digest == Candidate(source="a", author="person", parents=("x",)).digest
    assert one.digest != Candidate(source="b", author="offline").digest
