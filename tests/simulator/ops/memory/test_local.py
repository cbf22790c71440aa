"""Local memory is private to a thread."""

import numpy as np


def test_local_memory_is_each_threads_own(machine):
    result = machine.align(np.zeros(64, np.uint32))
    text = machine.kernel(
        """.local .align 8 .b8 depot[32]; .reg .b64 %SPL;
    mov.b64 %SPL, depot;
    st.local.b32 [%SPL+8], %r99;
    and.b32 %r1, %r99, 3; mad.wide.u32 %rd1, %r1, 4, %SPL;
    add.s32 %r2, %r99, 100; st.local.b32 [%rd1+16], %r2;
    ld.local.b32 %r3, [%rd1+16]; ld.local.b32 %r4, [%SPL+8];
    cvta.local.u64 %rd2, %SPL; ld.b32 %r5, [%rd2+8];
    add.s32 %r3, %r3, %r4; add.s32 %r3, %r3, %r5;
    mad.wide.u32 %rd3, %r99, 4, %rd90; st.global.b32 [%rd3], %r3;""",
        parameters=1,
    )
    profile = machine.launch(text, block=64, arrays=[result])
    assert (result == 3 * np.arange(64) + 100).all()
    assert profile.counters.gmem_load_sectors == 0
