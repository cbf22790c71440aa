"""The map to Nsight Compute's names covers every count, and reads them."""

from dataclasses import fields

import pytest

from cutegen_nb.core.nsight.names import COUNTERPARTS, figure
from cutegen_nb.core.profile import Access, Counters

COUNTED = Counters(
    warp_instructions=7,
    instructions={"tensor.f16": 3, "tensor.bf16": 2, "alu": 2},
    flops={"cuda.f32": 8, "tensor.f16": 4},
    gmem_accesses={"load": Access(requests=2, bytes=256, passes=9, ideal=8)},
)


def test_figures_are_read_by_their_path():
    assert figure(COUNTED, "warp_instructions") == 7
    assert figure(COUNTED, "instructions.tensor.bf16") == 2
    assert figure(COUNTED, "gmem_accesses.load.passes") == 9
    assert figure(COUNTED, "gmem_accesses.store.passes") == 0
    assert figure(COUNTED, "flops") == 12
    with pytest.raises(AttributeError):
        figure(COUNTED, "gmem_loads")


def test_products_of_all_half_types_are_one_metric():
    (hmma,) = (one for one in COUNTERPARTS if any(name.endswith("op_hmma") for name in one.metrics))

    assert hmma.count(COUNTED) == 5


def test_every_count_has_a_counterpart_or_a_reason():
    named = {path.partition(".")[0] for one in COUNTERPARTS for path in one.figures}
    parts = {  # what is the sum of figures that are listed by kind
        "gmem_load_sectors", "gmem_store_sectors", "gmem_atomic_sectors", "gmem_requests",
        "smem_load_bytes", "smem_store_bytes",
    }  # fmt: skip

    assert {item.name for item in fields(Counters)} == named | parts
    assert all(one.metrics or one.note for one in COUNTERPARTS)
    for one in COUNTERPARTS:
        assert one.count(Counters()) == 0
