"""Addresses of other CTAs' shared memory."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import OutOfBounds

SETUP = """
.shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 gate;
mov.u32 %r1, tile; mov.u32 %r2, gate; setp.eq.u32 %p1, %r99, 0;
mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank;
shl.b32 %r5, %r99, 2; add.u32 %r5, %r5, %r1;
mov.u32 %r10, %ctaid.x; mov.u32 %r11, %nctaid.x; mov.u32 %r12, %ctaid.y; mad.lo.u32 %r10, %r12, %r11, %r10;
mad.lo.u32 %r13, %r10, 32, %r99; mad.wide.u32 %rd1, %r13, 4, %rd90;
"""
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
NEXT = "add.u32 %r6, %r3, 1; rem.u32 %r6, %r6, %r4;"


def launched(  # noqa: PLR0913 - a launch has this many parts
    machine, body, *, grid=4, cluster=(2, 1, 1), block=32, arrays=(), findings=None
):
    size = int(np.prod(grid))
    out = machine.align(np.zeros(size * 32, np.int32))
    machine.launch(
        machine.kernel(SETUP + body, parameters=1 + len(arrays)), grid=grid, block=block, cluster=cluster,
        arrays=[out, *arrays], findings=findings,
    )  # fmt: skip
    return out.reshape(size, 32)


def test_a_generic_address_reaches_another_cta_and_tells_its_rank(machine):
    found = launched(
        machine, f"""add.u32 %r7, %r3, 70; st.shared.b32 [%r5], %r7; {MEET} {NEXT}
        cvt.u64.u32 %rd2, %r5; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r6; ld.b32 %r9, [%rd3];
        getctarank.u64 %r14, %rd3; mad.lo.u32 %r9, %r14, 1000, %r9; getctarank.u64 %r14, %rd2;
        mad.lo.u32 %r9, %r14, 100000, %r9; {MEET} st.global.b32 [%rd1], %r9;""",
    )  # fmt: skip
    assert found[:, 0].tolist() == [1071, 100070, 1071, 100070]


@pytest.mark.parametrize("use", ["ld.shared::cluster.b32 %r9, [%r8];", "st.shared::cluster.b32 [%r8], %r9;"])
def test_a_rank_beyond_the_cluster_is_out_of_bounds(machine, use):
    with pytest.raises(OutOfBounds, match="of a CTA that its cluster does not have"):
        launched(machine, f"mapa.shared::cluster.u32 %r8, %r5, 5; {use}")
