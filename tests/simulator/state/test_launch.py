"""Launches that a GPU refuses."""

import pytest

from cutegen_nb.simulator.ptx.faults import BadLaunch


def test_a_launch_that_a_gpu_refuses_is_refused(machine):
    with pytest.raises(BadLaunch, match="1025 threads"):
        machine.launch(machine.kernel("", parameters=0), block=1025)
    with pytest.raises(BadLaunch, match="no zero"):
        machine.launch(machine.kernel("", parameters=0), grid=0)
