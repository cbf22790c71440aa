"""The menu of a program's loops, and the texts of its kernels."""

from cutegen_nb.authors.offline.fused.texts import menu
from cutegen_nb.authors.offline.fused.variants import VECTORISE
from cutegen_nb.authors.offline.graph.reading import read


def test_kernels_of_one_kind_are_numbered(emitted):
    _, texts = emitted("(x.sum(), torch.relu(y))", ["torch.rand(64, 32)", "torch.rand(7)"])
    assert {text.name for text in texts} == {"reduce_rows", "elementwise"}
    _, several = emitted("x.sum(1).sum()", ["torch.rand(64, 32)"])
    assert [text.name for text in several] == ["reduce_rows_1", "reduce_rows_2"]


def test_vectors_are_not_offered_where_each_would_be_one_element(traced):
    odd = menu(read(traced("x.sum(1)", "torch.rand(4096, 4099)")))
    even = menu(read(traced("x.sum(1)", "torch.rand(4096, 4096)")))
    assert VECTORISE in {one.name for one in even}
    assert VECTORISE not in {one.name for one in odd}
