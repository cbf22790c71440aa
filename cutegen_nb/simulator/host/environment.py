"""Environment variables of a simulating process. Importing this module imports neither torch nor the DSL."""

from __future__ import annotations

from cutegen_nb.simulator.state.device import device_facts


def prepare_environment(architecture: str) -> dict[str, str]:
    """Return the environment variables to set before cutlass is imported, which reads them once.

    Raises:
        ConfigurationError: the simulator does not know the architecture.
    """
    device_facts(architecture)
    return {
        "CUTE_DSL_ARCH": architecture,
        "CUTE_DSL_LINEINFO": "1",  # counts and findings name lines of Python
        # Files cached by another process hold no PTX, and a candidate must not meet another's code.
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "CUTE_DSL_ENABLE_TVM_FFI": "0",  # as on a machine with no such setting
        "CUTE_DSL_KEEP": "",
        "CUTE_DSL_COMPILER_BACKEND": "legacy",
        "CUDA_VISIBLE_DEVICES": "",
    }
