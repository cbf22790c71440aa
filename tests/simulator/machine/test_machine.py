"""A sample of a grid's CTAs: which run, what they see of themselves, and what the record says."""

import numpy as np
import pytest

from cutegen_nb.simulator.machine.machine import run, sampled_ctas
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch

WRITES_ITS_NUMBER = """
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x;
mad.lo.u32 %r4, %r2, %r3, %r1;
mad.lo.u32 %r5, %r4, 32, %r99;
mul.wide.u32 %rd1, %r5, 4;
add.u64 %rd2, %rd90, %rd1;
add.u32 %r6, %r4, 1;
st.global.u32 [%rd2], %r6;
"""


def launched(machine, grid, max_ctas):
    module = parse(machine.kernel(WRITES_ITS_NUMBER, parameters=1))
    target = machine.align(np.zeros(grid[0] * grid[1] * 32, np.uint32))
    memory = GlobalMemory()
    memory.register(target.ctypes.data, target.nbytes, "target")
    launch = Launch(grid=grid, block=(32, 1, 1), dynamic_smem_bytes=0)
    parameters = (int(target.ctypes.data).to_bytes(8, "little"),)
    profile = run(module, "kernel", launch, parameters, memory, max_ctas=max_ctas)
    return profile, target.reshape(-1, 32)


def test_the_first_the_last_and_evenly_spaced_ctas_run_and_know_their_place(machine):
    profile, rows = launched(machine, (100, 30, 1), 5)
    wrote = np.flatnonzero(rows[:, 0])
    assert wrote.tolist() == [0, 750, 1500, 2249, 2999]
    assert (rows[wrote] == (wrote + 1)[:, None]).all()
    assert profile.ctas_run == 5
    assert profile.grid == (100, 30, 1)
    assert profile.counters.gmem_store_bytes == 5 * 128


@pytest.mark.parametrize("most", [None, 12, 1000])
def test_a_grid_within_the_limit_runs_whole_and_is_not_called_a_sample(machine, most):
    profile, rows = launched(machine, (4, 3, 1), most)
    assert (rows == np.arange(1, 13)[:, None]).all()
    assert profile.ctas_run is None


def test_ctas_of_clusters_are_not_separated():
    launch = Launch(grid=(64, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, cluster=(2, 1, 1))
    assert list(sampled_ctas(launch, 3)) == list(range(64))


def test_a_sample_of_one_is_the_first():
    launch = Launch(grid=(64, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0)
    assert list(sampled_ctas(launch, 1)) == [0]
