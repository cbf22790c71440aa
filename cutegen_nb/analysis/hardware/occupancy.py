"""Occupancy of a multiprocessor: the CTAs of a kernel that fit, what limits them, what would lift the limit.

Limits are those of the CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications
per Compute Capability". Allocation granularities of registers and shared memory are those of NVIDIA's
occupancy calculator (``cuda_occupancy.h`` of the CUDA toolkit). Occupancy tells how many warps the scheduler
can choose from, not how fast a kernel is.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.profile import LaunchProfile

WARP_THREADS = 32
"""Threads of a warp."""
MAX_REGISTERS_PER_THREAD = 255
"""Most 32-bit registers of one thread."""
REGISTERS_PER_SM = 65_536
"""32-bit registers of a multiprocessor, which is also the most that one CTA may use."""
_REGISTER_UNIT = 256
"""Allocation granularity: a warp gets registers in multiples of this number."""
_WARP_UNIT = 4
"""Register-file partitions of a multiprocessor. Registers are split equally among them, so the number of
warps that fit is a multiple of 4."""
_SMEM_UNIT = 128
"""Allocation granularity: a CTA gets shared memory in multiples of this many bytes."""
RESERVED_SMEM_BYTES = 1024
"""Bytes of shared memory that the system reserves in each CTA, from compute capability 8.0 on."""
_KIB = 1024

THREADS, REGISTERS, SHARED_MEMORY, CTA_SLOTS = "threads", "registers", "shared memory", "CTA slots"
"""Names of the resources that can limit occupancy, in the order used for equal limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiprocessorLimits:
    """Resident limits of one multiprocessor of an architecture."""

    architecture: str
    """Architecture without its suffix letter: ``sm_90`` for ``sm_90a``."""
    warps: int
    """Most resident warps."""
    ctas: int
    """Most resident CTAs."""
    smem_bytes: int
    """Shared memory in bytes."""

    @property
    def smem_per_cta_bytes(self) -> int:
        """Most shared memory of one CTA in bytes, static and dynamic together."""
        return self.smem_bytes - RESERVED_SMEM_BYTES


_LIMITS = {
    name: MultiprocessorLimits(architecture=name, warps=warps, ctas=ctas, smem_bytes=smem_kib * _KIB)
    for name, warps, ctas, smem_kib in (
        # Architecture, resident warps, resident CTAs, shared memory in KiB.
        ("sm_80", 64, 32, 164),
        ("sm_86", 48, 16, 100),
        ("sm_87", 48, 16, 164),
        ("sm_89", 48, 24, 100),
        ("sm_90", 64, 32, 228),
        ("sm_100", 64, 32, 228),
        ("sm_103", 64, 32, 228),
        ("sm_120", 48, 24, 100),
        ("sm_121", 48, 24, 100),
    )
}
"""Limits by architecture, from the programming guide's table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """CTAs that one resource of a multiprocessor allows."""

    cause: str
    """Name of the resource: ``threads`` · ``registers`` · ``shared memory`` · ``CTA slots``."""
    ctas: int
    """CTAs that the resource suffices for."""
    used: str
    """Share of the resource that one CTA takes, in words: ``8 of 64 warps``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Occupancy of a multiprocessor by the CTAs of one kernel."""

    active_ctas: int
    """CTAs that fit at once; 0 where not even one fits, in which case a launch is refused."""
    active_warps: int
    """Warps of the active CTAs."""
    max_warps: int
    """Most warps that the multiprocessor can hold."""
    limits: tuple[Limit, ...]
    """Limit of every resource, the tightest first."""
    lift: str
    """Advice that would let one more CTA fit; empty where the multiprocessor is full."""

    @property
    def fraction(self) -> float:
        """Active warps ÷ most warps, from 0 to 1."""
        return self.active_warps / self.max_warps

    @property
    def limiters(self) -> tuple[str, ...]:
        """Names of the resources that share the tightest limit, in the order of `limits`."""
        return tuple(one.cause for one in self.limits if one.ctas == self.limits[0].ctas)


def limits_of(architecture: str) -> MultiprocessorLimits | None:
    """Return the limits of an architecture, with or without suffix letter; None if it is not in the table."""
    return _LIMITS.get(architecture.rstrip("af"))


def launch_occupancy(launch: LaunchProfile) -> Occupancy | None:
    """Return the occupancy of a launch; None where its resources or its architecture's limits are unknown."""
    resources = launch.resources
    if resources is None or limits_of(resources.architecture) is None:
        return None
    x, y, z = launch.block
    return occupancy(
        resources.architecture,
        threads=x * y * z,
        registers=resources.registers,
        smem_bytes=resources.static_smem_bytes + launch.dynamic_smem_bytes,
    )


def occupancy(architecture: str, *, threads: int, registers: int, smem_bytes: int) -> Occupancy:
    """Return the occupancy of one multiprocessor by a kernel's CTAs.

    Args:
        architecture: as the compiler takes it: ``sm_80``, ``sm_90a``.
        threads: threads of a CTA.
        registers: registers of a thread; 0 where unknown, in which case registers set no limit.
        smem_bytes: shared memory of a CTA in bytes, static and dynamic together.

    Raises:
        ValueError: the architecture is not in the table.
    """
    held = limits_of(architecture)
    if held is None:
        raise ValueError(
            f"no limits are known for {architecture!r}; the table has {', '.join(_LIMITS)} and their letters"
        )
    # Rounded up: a partial warp occupies a whole one.
    warps = -(-max(threads, 1) // WARP_THREADS)
    limits = sorted(
        (
            Limit(cause=THREADS, ctas=held.warps // warps, used=f"{warps} of {held.warps} warps"),
            *_by_registers(registers, warps),
            _by_smem(held, smem_bytes),
            Limit(cause=CTA_SLOTS, ctas=held.ctas, used=f"1 of {held.ctas}"),
        ),
        key=lambda one: one.ctas,
    )
    active = limits[0].ctas
    return Occupancy(
        active_ctas=active, active_warps=active * warps, max_warps=held.warps, limits=tuple(limits),
        lift=_lift(held, limits, warps),
    )  # fmt: skip


def _by_registers(registers: int, warps: int) -> tuple[Limit, ...]:
    if not registers:
        return ()
    # Registers of one warp, then the warps that fit: whole warps in each of the four register partitions.
    each = _rounded(registers * WARP_THREADS, _REGISTER_UNIT)
    fitting = REGISTERS_PER_SM // each // _WARP_UNIT * _WARP_UNIT
    # The limit per CTA counts its warps rounded up to the four partitions, as ``cuda_occupancy.h`` does.
    taken = _rounded(warps, _WARP_UNIT) * each
    used = f"{taken:,} of {REGISTERS_PER_SM:,} ({registers} a thread)"
    ctas = 0 if registers > MAX_REGISTERS_PER_THREAD or taken > REGISTERS_PER_SM else fitting // warps
    return (Limit(cause=REGISTERS, ctas=ctas, used=used),)


def _by_smem(held: MultiprocessorLimits, smem_bytes: int) -> Limit:
    # The reserved bytes are charged to every resident CTA, so they count before rounding.
    taken = _rounded(smem_bytes + RESERVED_SMEM_BYTES, _SMEM_UNIT)
    used = f"{taken / _KIB:.4g} of {held.smem_bytes / _KIB:.4g} KiB"
    ctas = 0 if smem_bytes > held.smem_per_cta_bytes else held.smem_bytes // taken
    return Limit(cause=SHARED_MEMORY, ctas=ctas, used=used)


def _lift(held: MultiprocessorLimits, limits: list[Limit], warps: int) -> str:
    """Return the value that each of the tightest resources would need for one more CTA to fit."""
    wanted = limits[0].ctas + 1
    # One more CTA would exceed the warp limit: only CTAs with fewer warps can use what is left.
    if limits[0].ctas * warps + warps > held.warps:
        return "" if limits[0].ctas * warps == held.warps else _finer(held, limits[0].ctas * warps)
    steps = [
        _step(one.cause, held, wanted, warps) for one in limits if one.ctas < wanted and one.cause != THREADS
    ]
    return "; ".join(steps)


def _finer(held: MultiprocessorLimits, active: int) -> str:
    return f"CTAs of fewer warps: {held.warps - active} of {held.warps} warps are left, fewer than a CTA has"


def _step(cause: str, held: MultiprocessorLimits, wanted: int, warps: int) -> str:
    if cause == REGISTERS:
        most = _registers_for(wanted, warps)
        return f"at most {most} registers a thread" if most else "CTAs of fewer warps"
    if cause == SHARED_MEMORY:
        # An equal share of each CTA, rounded down to the granularity, less the bytes that the system
        # reserves.
        room = held.smem_bytes // wanted // _SMEM_UNIT * _SMEM_UNIT - RESERVED_SMEM_BYTES
        return f"at most {room:,} bytes of shared memory a CTA"
    return "larger CTAs"


def _registers_for(ctas: int, warps: int) -> int:
    """Return the most registers per thread with which this many CTAs fit; 0 where no number suffices."""
    # Inverse of `_by_registers`: registers per warp rounded down to the granularity, then per thread.
    each = REGISTERS_PER_SM // _rounded(ctas * warps, _WARP_UNIT) // _REGISTER_UNIT * _REGISTER_UNIT
    return min(each // WARP_THREADS, MAX_REGISTERS_PER_THREAD)


def _rounded(value: int, unit: int) -> int:
    """Round up to the next multiple of a unit."""
    return -(-value // unit) * unit
