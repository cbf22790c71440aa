"""Facts of a device follow from its architecture."""

import pytest

from cutegen_nb.simulator.state.device import device_facts


@pytest.mark.parametrize(
    ("architecture", "capability", "sms"),
    [("sm_80", (8, 0), 108), ("sm_90a", (9, 0), 132), ("sm_100a", (10, 0), 148)],
)
def test_capability_follows_from_the_architecture(architecture, capability, sms):
    facts = device_facts(architecture)
    assert (facts.capability, facts.sm_count, facts.attribute(75)) == (capability, sms, capability[0])
