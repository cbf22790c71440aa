"""Special registers: shared memory, clocks."""

import numpy as np
import pytest


@pytest.mark.parametrize("clock", ["%clock64", "%globaltimer"])
def test_clocks_never_go_back_from_cta_to_cta(machine, clock):
    result = machine.align(np.zeros(400, np.uint64))
    body = f"""mov.u64 %rd1, {clock}; add.s32 %r1, %r99, 1; mov.u64 %rd2, {clock}; setp.le.u64 %p1, %rd2, %rd1;
    @%p1 trap; mov.u32 %r2, %ctaid.x; mad.wide.u32 %rd3, %r2, 8, %rd90; st.global.b64 [%rd3], %rd2;"""
    machine.launch(machine.kernel(body, parameters=1), block=256, grid=400, arrays=[result])
    assert (np.diff(result.astype(np.int64)) >= 0).all()
    assert len(np.unique(result)) > 1


def test_special_registers_tell_shared_memory_apart(machine):
    result = machine.align(np.zeros(2, np.uint32))
    body = """.shared .align 4 .b8 tile[256]; mov.u32 %r1, %dynamic_smem_size; mov.u32 %r2, %total_smem_size;
    st.global.v2.b32 [%rd90], {%r1, %r2};"""
    machine.launch(machine.kernel(body, parameters=1), block=1, arrays=[result], smem=64)
    assert result.tolist() == [64, 320]
