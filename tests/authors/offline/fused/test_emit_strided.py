"""Strided reductions in vectors: a thread takes neighbouring rows."""

import ast

from cutegen_nb.authors.offline.fused.variants import VECTORISE


def test_a_thread_keeps_an_accumulator_for_each_row_of_its_vector(emitted):
    inputs = ["torch.rand(1000, 4096)"]
    _, (plain,) = emitted("x.sum(0)", inputs)
    _, (vectors,) = emitted("x.sum(0)", inputs, VECTORISE)
    ast.parse(vectors.source)
    assert "autovec_copy" in vectors.source
    assert "autovec_copy" not in plain.source
    assert vectors.vector[0].extent.full == 4096
