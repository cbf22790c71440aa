"""Storages that launches read and wrote, as the simulation tells them."""

PROGRAM = "storages"


def test_reads_and_writes_of_launches_are_told(outcome):
    assert outcome == "ok", outcome
