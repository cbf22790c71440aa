"""Loads, stores and atomics on another CTA's shared memory."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings

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


@pytest.mark.parametrize(("grid", "cluster"), [(6, (2, 1, 1)), (8, (4, 1, 1)), ((4, 4, 1), (2, 2, 1))])
def test_each_cta_reads_what_the_next_one_of_its_cluster_wrote(machine, grid, cluster):
    findings = Findings()
    found = launched(
        machine, f"""shl.b32 %r7, %r10, 8; add.u32 %r7, %r7, %r99; st.shared.b32 [%r5], %r7; {MEET} {NEXT}
        mapa.shared::cluster.u32 %r8, %r5, %r6; ld.shared::cluster.b32 %r9, [%r8]; {MEET}
        st.global.b32 [%rd1], %r9;""",
        grid=grid, cluster=cluster, findings=findings,
    )  # fmt: skip
    extents = grid if isinstance(grid, tuple) else (grid, 1, 1)
    for number in range(len(found)):
        x, y = number % extents[0], number // extents[0]
        cx, cy = x % cluster[0], y % cluster[1]
        rank = (cx + cy * cluster[0] + 1) % (cluster[0] * cluster[1])
        other = (x - cx + rank % cluster[0]) + (y - cy + rank // cluster[0]) * extents[0]
        assert (found[number] == other * 256 + np.arange(32)).all()
    assert findings.all() == ()


def test_atomics_and_stores_reach_another_cta(machine):
    found = launched(
        machine, f"""mov.b32 %r7, 5; st.shared.b32 [%r5], %r7; {MEET} {NEXT} mapa.shared::cluster.u32 %r8, %r5, %r6;
        red.shared::cluster.add.u32 [%r8], %r99; {MEET} st.shared::cluster.b32 [%r8+512], %r10; {MEET}
        ld.shared.b32 %r9, [%r5]; ld.shared.b32 %r14, [%r5+512]; mad.lo.u32 %r9, %r14, 1000, %r9;
        st.global.b32 [%rd1], %r9;""",
    )  # fmt: skip
    assert (found == 5 + np.arange(32) + 1000 * np.array([1, 0, 3, 2])[:, None]).all()
