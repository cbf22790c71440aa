"""Counts of a launch are subtracted, multiplied and written back; sectors of a sample are ranges."""

from types import SimpleNamespace

import numpy as np

from cutegen_nb.simulator.counters.counters import Tally
from cutegen_nb.simulator.machine.program import program_of
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.sampling.counts import FIELDS, CountReader, SampleTally


def test_what_is_written_is_read_again_and_only_instructions_with_counts_have_rows(machine):
    module = parse(
        machine.kernel(
            "ld.global.b32 %r1, [%rd90]; add.u32 %r2, %r1, 1; st.global.b32 [%rd90], %r2;", parameters=1
        )
    )
    program = program_of(module, next(iter(module.kernels.values())))
    reader, tally = CountReader(program), Tally(len(program.segments))
    before = reader.read(tally)
    accesses = before.fields.shape[0]
    assert before.fields.shape == (accesses, len(FIELDS))
    assert 2 <= accesses < sum(reader.lengths)
    more = before.times(0.0)
    more.fields[:, 0] = 2.6
    reader.write(before + more, tally)
    after = reader.read(tally, clock=5.0)
    assert set((after - before).fields[:, 0]) == {3}
    everything = frozenset(range(len(program.segments)))
    assert not reader.same(after, before, 0, frozenset())
    assert reader.same(after, reader.read(tally), 0, frozenset())
    assert reader.same(after, before, 0, everything)
    accessing = next(at for at, one in enumerate(program.segments) if len(one.instructions) > 1)
    assert not reader.same(after, before, 0, everything - {accessing})


def test_a_range_grows_with_slices_and_arrays_of_sectors():
    tally = SampleTally(1)
    allocation = SimpleNamespace(address=32 * 100)
    flags, first = tally.touched(allocation)
    assert (first, tally.extent(allocation)) == (100, 0)
    flags[slice(5, 9)] = True
    flags[np.array([20, 2])] = True
    flags[np.array([], np.int64)] = True
    assert tally.extent(allocation) == 19
    assert tally.distinct_sectors() == 0
