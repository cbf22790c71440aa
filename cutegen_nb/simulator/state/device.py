"""Device properties: sizes and limits that a simulated device reports to a program.

Each architecture has the sizes of one data-centre or desktop part, from NVIDIA's CUDA C++ Programming Guide,
table "Technical Specifications per Compute Capability", and the parts' white papers. Speeds are not reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.errors import ConfigurationError

_KIB = 1024
_MIB = 1024 * _KIB
_GIB = 1024 * _MIB

MAX_BLOCK_DIM = (1024, 1024, 64)
"""Most threads of a CTA along x, y, z."""
MAX_GRID_DIM = (2**31 - 1, 65535, 65535)
"""Most CTAs of a grid along x, y, z."""
MAX_THREADS_PER_BLOCK = 1024
"""Most threads of a CTA."""
WARP_THREADS = 32
"""Threads of a warp."""
DEFAULT_SMEM_PER_BLOCK_BYTES = 48 * _KIB
"""Bytes of shared memory that a CTA may have without opting in to more."""
RESERVED_SMEM_PER_BLOCK_BYTES = _KIB
"""Bytes of shared memory that the system reserves for each resident CTA, from compute capability 8.0 on."""
REGISTERS_PER_SM = 65536
"""32-bit registers of an SM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """Sizes and limits of one simulated device."""

    architecture: str
    """Architecture as the compiler writes it: ``sm_80``, ``sm_90a``."""
    capability: tuple[int, int]
    """Compute capability, major and minor."""
    sm_count: int
    """Number of streaming multiprocessors (SMs)."""
    smem_per_block_optin_bytes: int
    """Most bytes of shared memory of a CTA, static and dynamic together."""
    smem_per_sm_bytes: int
    """Bytes of shared memory of an SM."""
    threads_per_sm: int
    """Most resident threads of an SM."""
    blocks_per_sm: int
    """Most resident CTAs of an SM."""
    l2_bytes: int
    """Bytes of the L2 cache."""
    memory_bytes: int
    """Bytes of global memory."""

    @property
    def name(self) -> str:
        """Device name that a program is told; it says that this is the simulator."""
        return f"cutegen simulator {self.architecture}"

    def attribute(self, number: int) -> int | None:
        """Value of a ``cudaDeviceAttr`` (or ``CUdevice_attribute``, same numbers); None where not answered.

        Clock rates and bus widths are not answered: the simulator has no speed.
        """
        return {
            1: MAX_THREADS_PER_BLOCK,
            2: MAX_BLOCK_DIM[0],
            3: MAX_BLOCK_DIM[1],
            4: MAX_BLOCK_DIM[2],
            5: MAX_GRID_DIM[0],
            6: MAX_GRID_DIM[1],
            7: MAX_GRID_DIM[2],
            8: DEFAULT_SMEM_PER_BLOCK_BYTES,
            9: 64 * _KIB,  # constant memory
            10: WARP_THREADS,
            12: REGISTERS_PER_SM,
            16: self.sm_count,
            17: 0,  # no limit on a kernel's run time
            18: 0,  # not integrated
            20: 0,  # default compute mode
            31: 1,  # concurrent kernels
            38: self.l2_bytes,
            39: self.threads_per_sm,
            41: 1,  # unified addressing
            75: self.capability[0],
            76: self.capability[1],
            81: self.smem_per_sm_bytes,
            82: REGISTERS_PER_SM,
            95: 1,  # cooperative launch
            97: self.smem_per_block_optin_bytes,
            106: self.blocks_per_sm,
            111: RESERVED_SMEM_PER_BLOCK_BYTES,
            120: int(self.capability >= (9, 0)),  # cluster launch
        }.get(number)

    def resident_blocks(self, threads: int, smem_bytes: int) -> int:
        """CTAs of ``threads`` threads and ``smem_bytes`` of shared memory that fit one SM.

        Registers are not counted: they are known only after the PTX is assembled.
        """
        warps = -(-max(threads, 1) // WARP_THREADS)
        by_threads = self.threads_per_sm // (warps * WARP_THREADS)
        # The system reserves shared memory for each CTA on top of its own.
        by_smem = self.smem_per_sm_bytes // (max(smem_bytes, 0) + RESERVED_SMEM_PER_BLOCK_BYTES)
        return min(self.blocks_per_sm, by_threads, by_smem)


def _facts(  # noqa: PLR0913, PLR0917 - a row of the table below
    architecture: str,
    sm_count: int,
    smem_kib: int,
    threads: int,
    blocks: int,
    l2_mib: int,
    memory_gib: int,
) -> DeviceFacts:
    digits = architecture.removeprefix("sm_").rstrip("af")
    return DeviceFacts(
        architecture=architecture,
        capability=(int(digits[:-1]), int(digits[-1])),
        sm_count=sm_count,
        smem_per_block_optin_bytes=(smem_kib - 1) * _KIB,  # 1 KiB is reserved by the system
        smem_per_sm_bytes=smem_kib * _KIB,
        threads_per_sm=threads,
        blocks_per_sm=blocks,
        l2_bytes=l2_mib * _MIB,
        memory_bytes=memory_gib * _GIB,
    )


_DEVICES = {
    facts.architecture: facts
    for facts in (
        _facts("sm_80", 108, 164, 2048, 32, 40, 80),  # A100
        _facts("sm_86", 84, 100, 1536, 16, 6, 48),  # A40
        _facts("sm_89", 142, 100, 1536, 24, 96, 48),  # L40S
        _facts("sm_90", 132, 228, 2048, 32, 50, 80),  # H100
        _facts("sm_90a", 132, 228, 2048, 32, 50, 80),
        _facts("sm_100", 148, 228, 2048, 32, 126, 180),  # B200
        _facts("sm_100a", 148, 228, 2048, 32, 126, 180),
        _facts("sm_103", 148, 228, 2048, 32, 126, 288),  # B300
        _facts("sm_103a", 148, 228, 2048, 32, 126, 288),
        _facts("sm_120", 188, 100, 1536, 24, 128, 96),  # RTX PRO 6000
        _facts("sm_120a", 188, 100, 1536, 24, 128, 96),
    )
}


_UNKNOWN_SMS = 132
"""SMs where an architecture is not known: those of an H100, as in a test's PTX without a target."""


def sm_count(architecture: str) -> int:
    """Return the SMs of the device simulated for an architecture; those of an H100 if it is not known."""
    facts = _DEVICES.get(architecture)
    return _UNKNOWN_SMS if facts is None else facts.sm_count


def device_facts(architecture: str) -> DeviceFacts:
    """Return the device simulated for an architecture.

    Raises:
        ConfigurationError: the architecture is not one the simulator knows.
    """
    facts = _DEVICES.get(architecture)
    if facts is None:
        raise ConfigurationError(
            f"The simulator does not know the architecture {architecture!r}; "
            f"choose one of {', '.join(_DEVICES)}."
        )
    return facts
