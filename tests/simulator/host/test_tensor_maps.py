"""`cuTensorMapEncodeTiled` as host code calls it."""

import pytest

from tests.simulator.conftest import case_names


@pytest.mark.parametrize("case", case_names("driver_maps"))
def test_maps_that_the_driver_encodes(case, simulator_on):
    assert simulator_on("sm_90a").run("driver_maps")[case] == "ok"
