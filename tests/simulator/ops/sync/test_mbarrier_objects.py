"""Misuse of an mbarrier in shared memory."""

import numpy as np
import pytest

from cutegen_nb.simulator.ops.sync.mbarrier_objects import BarrierMisuse
from cutegen_nb.simulator.ptx.faults import Misaligned, OutOfBounds

SHARED = ".shared .align 16 .b8 room[4096]; mov.b32 %r80, room;"
INIT = """setp.eq.u32 %p9, %r99, 0; @!%p9 bra READY; mbarrier.init.shared.b64 [%r80], {count};
READY: bar.sync 0;"""


def run(machine, body, *, block=64, grid=1, count=None):
    """Run a body; gives what each thread stored with STORE."""
    init = "" if count is None else INIT.format(count=count)
    result = machine.align(np.zeros((grid, block), np.uint32))
    head = f"mov.u32 %r90, %ctaid.x; mad.wide.u32 %rd90, %r90, {4 * block}, %rd90;"
    text = machine.kernel(SHARED + head + init + body, parameters=1)
    machine.launch(text, block=block, grid=grid, arrays=[result])
    return result


def test_a_barrier_must_be_initialised_and_valid(machine):
    with pytest.raises(BarrierMisuse, match="not initialised"):
        run(machine, "mbarrier.arrive.shared.b64 _, [%r80];")
    with pytest.raises(BarrierMisuse, match="not initialised"):
        run(
            machine,
            "bar.sync 0; mbarrier.inval.shared.b64 [%r80]; mbarrier.arrive.shared.b64 _, [%r80];",
            count=64,
        )
    with pytest.raises(BarrierMisuse, match="with 0 arrivals"):
        run(machine, "bar.sync 0;", count=0)


def test_more_arrivals_than_a_phase_waits_for_are_a_fault(machine):
    body = "setp.ne.u32 %p2, %r99, 0; @%p2 bra END; mbarrier.arrive.shared.b64 _, [%r80], 3; END:"
    with pytest.raises(BarrierMisuse, match=r"Thread \(0, 0, 0\) .*expects 2 arrivals"):
        run(machine, body, count=2)


def test_places_that_are_no_mbarrier_are_faults(machine):
    with pytest.raises(OutOfBounds, match="mbarrier at byte 4096"):
        run(machine, "mbarrier.init.shared.b64 [%r80+4096], 1;")
    with pytest.raises(Misaligned, match="of an mbarrier"):
        run(machine, "mbarrier.init.shared.b64 [%r80+4], 1;")
    with pytest.raises(BarrierMisuse, match="not initialised"):
        run(machine, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r80];")
