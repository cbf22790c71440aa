"""Rows in shared memory: one CTA's, or a cluster's."""

import ast

import pytest

from cutegen_nb.authors.offline.fused.variants import CLUSTER, ON_CHIP


@pytest.mark.parametrize(
    ("step", "columns", "shared_by_ctas"), [(ON_CHIP, 20000, False), (CLUSTER, 393216, True)]
)
def test_a_row_is_copied_once_and_read_from_shared_memory(emitted, step, columns, shared_by_ctas):
    _, (text,) = emitted("torch.softmax(x, 1)", [f"torch.rand(4096, {columns})"], step)
    ast.parse(text.source)
    assert "cp_async" in text.source
    assert ("cluster" in text.source) is shared_by_ctas


def test_a_row_that_is_read_once_stays_a_plain_kernel(emitted):
    _, (text,) = emitted("x.sum(1)", ["torch.rand(4096, 20000)"], ON_CHIP)
    assert "cp_async" not in text.source
