"""Memory that unsampled CTAs would have written."""

import struct

import numpy as np

from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.sampling.sample import sample_launch
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch


def test_what_unsampled_ctas_would_have_written_is_there_for_the_next_launch(machine):
    """Each CTA writes one sector of scales, of which a later launch must not read zeros."""
    body = "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 32; add.u64 %rd2, %rd90, %rd1; st.global.b32 [%rd2], 7;"
    ctas = 4096
    scales, others = machine.align(np.zeros(8 * ctas, np.int32)), machine.align(np.zeros(64, np.int32))
    memory = GlobalMemory()
    for one in (scales, others):
        memory.register(one.ctypes.data, one.nbytes, "tensor")
    launch = Launch(grid=(ctas, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0)
    parameters = (struct.pack("<Q", scales.ctypes.data),)
    sample = sample_launch(parse(machine.kernel(body, parameters=1)), "kernel", launch, parameters, memory)
    assert sample.ctas < 20
    assert (scales[::8] == 7).all()
    assert not scales.reshape(ctas, 8)[:, 1:].any()
    assert not others.any()
