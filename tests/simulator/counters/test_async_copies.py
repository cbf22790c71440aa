"""cp.async in every size, with fewer bytes to read than to write."""

import numpy as np
import pytest


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("source", ["one for all", "by thread", "all of it"])
def test_bytes_beyond_the_source_size_are_zero(machine, size, source):
    """Thread t copies its own bytes, of which the first 5 (or t modulo 17) are read."""
    given = machine.align(np.random.default_rng(2).integers(1, 256, (64, size)).astype(np.uint8))
    result = machine.align(np.full((64, size), 7, np.uint8))
    asked = {"one for all": "5", "by thread": "%r30", "all of it": str(size)}[source]
    words = size // 4
    registers = ", ".join(f"%r{40 + one}" for one in range(words))
    vector = f"v{words}." if words > 1 else ""
    text = machine.kernel(
        f""".shared .align 16 .b8 room[1024];
        mad.wide.u32 %rd1, %r99, {size}, %rd90; mul.lo.u32 %r1, %r99, {size};
        rem.u32 %r30, %r99, 17; min.u32 %r30, %r30, {size};
        cp.async.ca.shared.global [%r1], [%rd1], {size}, {asked if asked != "5" else min(5, size)};
        cp.async.commit_group; cp.async.wait_group 0;
        ld.shared.{vector}b32 {"{" + registers + "}" if words > 1 else registers}, [%r1];
        mad.wide.u32 %rd2, %r99, {size}, %rd91;
        st.global.{vector}b32 [%rd2], {"{" + registers + "}" if words > 1 else registers};""",
        parameters=2,
    )
    profile = machine.launch(text, block=64, arrays=[given, result])
    read = {"one for all": np.full(64, min(5, size)), "by thread": np.minimum(np.arange(64) % 17, size),
            "all of it": np.full(64, size)}[source]  # fmt: skip
    assert np.array_equal(result, np.where(np.arange(size) < read[:, None], given, 0))
    assert profile.counters.smem_store_bytes == 64 * size
