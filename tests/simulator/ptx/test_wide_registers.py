"""Registers of 128 bits are two halves."""

import numpy as np


def test_registers_of_128_bits_move_as_two_halves(machine):
    source = machine.align(np.arange(64 * 4, dtype=np.uint32))
    result = machine.align(np.zeros(64 * 4, np.uint32))
    body = """.reg .b128 %rq<4>; .shared .align 16 .b8 tile[1024];
    mad.wide.u32 %rd1, %r99, 16, %rd90; mad.wide.u32 %rd2, %r99, 16, %rd91;
    ld.global.b128 %rq1, [%rd1]; mov.b128 %rq2, %rq1; mov.b128 {%rd3, %rd4}, %rq2;
    mov.b128 %rq3, {%rd4, %rd3}; mov.b32 %r1, tile; mad.lo.s32 %r1, %r99, 16, %r1;
    and.b32 %r2, %r99, 1; setp.eq.b32 %p1, %r2, 0; @%p1 mov.b128 %rq3, %rq1;
    st.shared.b128 [%r1], %rq3; ld.shared.b128 %rq2, [%r1]; st.global.b128 [%rd2], %rq2;"""
    machine.launch(machine.kernel(body, parameters=2), block=64, arrays=[source, result])
    want = source.reshape(64, 2, 2).copy()
    want[1::2] = want[1::2, ::-1]
    assert (result.reshape(64, 2, 2) == want).all()
