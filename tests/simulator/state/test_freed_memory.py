"""Freed memory stays in the process."""

import sys

import pytest

from cutegen_nb.simulator.state.freed_memory import keep_freed_memory


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's settings")
def test_the_c_library_accepts_the_settings_each_time_it_is_asked():
    assert keep_freed_memory()
    assert keep_freed_memory()
