"""Names of partial results in the kernel and in forward."""

from cutegen_nb.authors.offline.fused.kernel_text import Scratch


def test_a_partial_result_is_named_after_its_register():
    scratch = Scratch("sum_1", "float32", rows_fastest=False)
    assert (scratch.host, scratch.tensor) == ("sum_1_parts", "mSum1Parts")
    assert Scratch("sum_1", "int32", rows_fastest=True, suffix="_met").host == "sum_1_met"
