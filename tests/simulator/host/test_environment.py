"""Environment of a simulating process."""

import pytest

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.simulator.host.environment import prepare_environment


def test_kernels_are_compiled_for_the_architecture_with_lines_and_without_a_gpu():
    found = prepare_environment("sm_90a")
    assert found["CUTE_DSL_ARCH"] == "sm_90a"
    assert found["CUTE_DSL_LINEINFO"] == "1"
    assert found["CUDA_VISIBLE_DEVICES"] == ""


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ConfigurationError, match="sm_35"):
        prepare_environment("sm_35")
