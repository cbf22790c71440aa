"""Rows over the whole grid: CTAs that all run at once share a row through global memory."""

import ast

from cutegen_nb.authors.offline.fused.variants import CLUSTER, OVER_GRID

VALUE, LONG = "functional.layer_norm(x, x.shape[1:])", ["torch.rand(16, 2**22)"]


def test_the_host_learns_how_many_ctas_share_a_row(emitted):
    _, (text,) = emitted(VALUE, LONG, OVER_GRID)
    ast.parse(text.source)
    assert text.over_grid.ctas_per_sm == 2
    assert text.over_grid.meetings >= 1
    assert text.scratch


def test_a_row_that_a_cluster_keeps_and_one_that_begins_anywhere_do_not_need_it(emitted):
    _, (short,) = emitted("torch.softmax(x, 1)", ["torch.rand(4096, 393216)"], OVER_GRID)
    assert short.over_grid is None
    _, (cluster,) = emitted(VALUE, LONG, CLUSTER)
    assert cluster.over_grid is None
