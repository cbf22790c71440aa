"""What the environment of a simulating process must hold; importing this imports next to nothing."""

from __future__ import annotations

from cutegen_nb.simulator.bridge_device import device_facts


def prepare_environment(architecture: str) -> dict[str, str]:
    """Environment for the process, to be set before it imports cutlass, which reads it once.

    Raises:
        ConfigurationError: the simulator does not know the architecture.
    """
    device_facts(architecture)
    return {
        "CUTE_DSL_ARCH": architecture,
        "CUTE_DSL_LINEINFO": "1",
        # Files cached by another process hold no PTX, and a candidate must not meet another's code.
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "CUTE_DSL_ENABLE_TVM_FFI": "0",
        "CUTE_DSL_KEEP": "",
        "CUTE_DSL_COMPILER_BACKEND": "legacy",
        "CUDA_VISIBLE_DEVICES": "",
    }
