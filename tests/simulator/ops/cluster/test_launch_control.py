"""``clusterlaunchcontrol``: CTAs that take the work of those that have not started."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.ptx.faults import UnsupportedOpcode

REQUEST = (
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{many}.b128 [%r1], [%r2];"
)
LOOP = """
.shared .align 16 .b8 answer[16]; .shared .align 8 .b64 gate; .reg .b128 %rq<3>;
mov.u32 %r1, answer; mov.u32 %r2, gate; setp.eq.u32 %p1, %r99, 0; mov.u32 %r10, %ctaid.x; mov.u32 %r3, 0;
mov.u32 %r4, %cluster_ctarank; setp.eq.and.u32 %p6, %r4, 0, %p1; mov.u32 %r5, %cluster_nctarank;
@%p1 mbarrier.init.shared.b64 [%r2], 1; barrier.cluster.arrive; barrier.cluster.wait;
WORK: mad.lo.u32 %r13, %r10, 32, %r99; mad.wide.u32 %rd1, %r13, 4, %rd90; mad.lo.u32 %r14, %r10, 100, %r99;
red.global.add.u32 [%rd1], %r14;
@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r2], 16; {request}
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], %r3; @!%p2 bra WAIT;
xor.b32 %r3, %r3, 1; ld.shared.b128 %rq1, [%r1];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %rq1; @!%p3 bra END;
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %rq1; add.u32 %r10, %r10, %r4;
barrier.cluster.arrive; barrier.cluster.wait; bra WORK; END:
"""


def worked(machine, grid, cluster, request):
    """What each CTA's 32 places hold after the grid ran, and the number of CTAs that ran."""
    out, findings = machine.align(np.zeros((grid, 32), np.uint32)), Findings()
    profile = machine.launch(
        machine.kernel(LOOP.format(request=request), parameters=1), grid=grid, cluster=(cluster, 1, 1),
        arrays=[out], findings=findings,
    )  # fmt: skip
    assert findings.all() == ()
    return out, profile


@pytest.mark.parametrize(("grid", "cluster"), [(1, 1), (7, 1), (12, 2)])
def test_every_tile_is_done_once_by_clusters_that_run(machine, grid, cluster):
    many = ".multicast::cluster::all" if cluster > 1 else ""
    out, profile = worked(machine, grid, cluster, "@%p6 " + REQUEST.format(many=many))
    assert (out == 100 * np.arange(grid)[:, None] + np.arange(32)).all()
    assert profile.counters.gmem_requests == grid


def test_a_kernel_that_takes_no_work_runs_all_of_its_ctas(machine):
    nothing = "setp.ne.u32 %p7, 0, 0; @%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 16; @%p7 "
    out, _ = worked(machine, 5, 1, nothing + REQUEST.format(many="") + " bra END;")
    assert (out == 100 * np.arange(5)[:, None] + np.arange(32)).all()


def test_another_form_is_refused_by_name(machine):
    with pytest.raises(UnsupportedOpcode, match=r"clusterlaunchcontrol\.try_cancel"):
        worked(machine, 2, 1, "@%p6 " + REQUEST.format(many="").replace(".async", ""))
