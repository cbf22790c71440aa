"""Element-wise work is applied to the parts of a concatenation, where nothing else uses the whole."""

from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.graph.reading import read

X, ROW, COLUMN = "torch.rand(64, 32)", "torch.rand(32)", "torch.rand(64, 1)"
TURNED = "torch.cat([-x[:, 16:], x[:, :16]], -1)"


def planned(traced, value, *inputs):
    return plan(read(traced(value, *inputs)))


def stored(found):
    return [
        [store.access.value.partition("_part")[0] for store in (*kernel.element_stores, *kernel.row_stores)]
        for kernel in found.kernels
    ]


def test_one_kernel_reads_the_halves_and_stores_the_halves_of_the_result(traced):
    found = planned(traced, f"x * y + {TURNED} * z", X, ROW, COLUMN)
    assert stored(found) == [["out", "out"]]
    # The column is broadcast along the halves, and is not cut.
    assert sorted({access.value for access in found.kernels[0].loads} & {"y", "z"}) == ["z"]
    assert len(found.kernels[0].loads) == 5


def test_a_view_is_cut_where_its_last_dimensions_are_those_of_its_source(traced):
    assert stored(planned(traced, f"{TURNED} * y[None]", X, ROW)) == [["out", "out"]]
    # Not so where a dimension of the view is made of two of the source's.
    assert len(stored(planned(traced, f"{TURNED} * y.view(32)", X, "torch.rand(4, 8)"))) == 2


def test_a_concatenation_that_something_else_needs_stays(traced):
    assert len(stored(planned(traced, f"{TURNED}.relu() + {TURNED}.sum(1, True)", X))) == 3
    returned = planned(traced, f"(lambda t: (t, t * 2))({TURNED})", X)
    assert len(stored(returned)) == 2


def test_unequal_parts_stay(traced):
    assert len(stored(planned(traced, "torch.cat([x[:, :8], -x[:, 8:]], -1).relu()", X))) == 3
