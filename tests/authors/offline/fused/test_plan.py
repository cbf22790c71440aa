"""Fusion: which operations share a kernel, and what is stored between kernels."""

import pytest

from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.graph.reading import read


def planned(traced, value, *inputs, **options):
    return plan(read(traced(value, *inputs)), **options)


@pytest.mark.parametrize(
    ("value", "kernels"),
    [
        ("torch.relu(x) * 2 + 1", 1),
        ("torch.softmax(x, 1)", 1),
        ("x / x.sum()", 1),
        ("x.sum(0) + 1", 1),
        ("x.sum(1).sum()", 2),
    ],
)
def test_work_on_the_same_rows_shares_a_kernel(traced, value, kernels):
    assert len(planned(traced, value, "torch.rand(64, 32)").kernels) == kernels


def test_passes_of_a_softmax_follow_their_dependences(traced):
    (kernel,) = planned(traced, "torch.softmax(x, 1)", "torch.rand(64, 32)").kernels
    assert [[item.how for item in group] for group in kernel.passes] == [["max"], ["sum"]]
    assert (len(kernel.element_stores), kernel.row_stores) == (1, ())


def test_a_value_stored_between_kernels_keeps_its_precision(traced):
    found = planned(traced, "torch.relu(x.sum(1)).sum()", "torch.rand(64, 32).half()")
    (temporary,) = found.temporaries
    assert found.program.dtype(temporary) == "float16"
    assert found.dtype(temporary) == "float32"
