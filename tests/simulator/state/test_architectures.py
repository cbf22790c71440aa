"""Architectures of the simulator for those of GPUs."""

import pytest

from cutegen_nb.simulator.state.architectures import (
    ARCHITECTURES,
    DEFAULT_ARCHITECTURE,
    LARGEST_ARCHITECTURE,
    architecture_for,
)


@pytest.mark.parametrize(
    ("gpu", "simulated"), [("sm_80", "sm_80"), ("sm_90", "sm_90a"), ("sm_100", "sm_100a"), ("sm_75", None)]
)
def test_a_gpu_has_the_architecture_with_its_own_instructions(gpu, simulated):
    assert architecture_for(gpu) == simulated


def test_the_default_and_the_largest_are_among_them_and_the_oldest_comes_first():
    assert {DEFAULT_ARCHITECTURE, LARGEST_ARCHITECTURE} <= set(ARCHITECTURES)
    numbers = [int("".join(filter(str.isdigit, one))) for one in ARCHITECTURES]
    assert numbers == sorted(numbers)
