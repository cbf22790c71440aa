"""The second kernel of a split reduction merges the parts of each row."""

import ast

from cutegen_nb.authors.offline.fused.variants import CTA_PER_ROW, SPLIT


def test_it_reads_every_part_and_stores_once_a_row(emitted):
    _, (first, second) = emitted("x.mean(1)", ["torch.rand(4, 1000000)"], CTA_PER_ROW, SPLIT)
    ast.parse(second.source)
    assert second.name == f"{first.name}_join"
    assert second.scratch == first.scratch
    assert not second.splits
    assert "SPLITS" in second.source
