"""Rows of data movement: what every kernel needs is documented with an example."""

from cutegen_nb.simulator.isa.movement import MOVEMENT


def test_loads_stores_and_moves_have_examples_and_every_chapter_has_rows():
    examples = {row[0]: row[2] for rows in MOVEMENT.values() for row in rows}
    assert all(MOVEMENT.values())
    assert [name for name in ("ld", "st", "mov") if not examples[name]] == []
