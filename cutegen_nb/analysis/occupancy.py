"""How many CTAs of a kernel one multiprocessor holds, what limits them, and what would lift the limit.

The limits are those of the CUDA C++ Programming Guide, "Compute Capabilities", table "Technical
Specifications per Compute Capability"; the granularities by which registers and shared memory are given out
are those of NVIDIA's occupancy calculator (``cuda_occupancy.h`` of the CUDA toolkit). Occupancy says how many
warps there are to choose from, not how fast a kernel is.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.profile import LaunchProfile

WARP_THREADS = 32
MAX_REGISTERS_PER_THREAD = 255
REGISTERS_PER_SM = 65_536
"""32-bit registers of a multiprocessor, and the most that one CTA may have."""
_REGISTER_UNIT = 256
"""Registers are given to a warp in multiples of this."""
_WARP_UNIT = 4
"""Registers lie in four equal parts of a multiprocessor, so they suffice for a multiple of 4 warps."""
_SMEM_UNIT = 128
"""Shared memory is given to a CTA in multiples of this."""
RESERVED_SMEM_BYTES = 1024
"""Shared memory that the system keeps of each CTA, from compute capability 8.0 on."""
_KIB = 1024

THREADS, REGISTERS, SHARED_MEMORY, CTA_SLOTS = "threads", "registers", "shared memory", "CTA slots"
"""Causes, in the order in which equal limits are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiprocessorLimits:
    """What one multiprocessor of an architecture holds."""

    architecture: str
    """Without its letter: ``sm_90`` for ``sm_90a``."""
    warps: int
    """Resident warps."""
    ctas: int
    """Resident CTAs."""
    smem_bytes: int
    """Shared memory."""

    @property
    def smem_per_cta_bytes(self) -> int:
        """Most shared memory of one CTA, static and dynamic together."""
        return self.smem_bytes - RESERVED_SMEM_BYTES


_LIMITS = {
    name: MultiprocessorLimits(architecture=name, warps=warps, ctas=ctas, smem_bytes=smem_kib * _KIB)
    for name, warps, ctas, smem_kib in (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many CTAs one resource would allow."""

    cause: str
    """``threads`` · ``registers`` · ``shared memory`` · ``CTA slots``."""
    ctas: int
    """CTAs it suffices for."""
    used: str
    """What a CTA takes of what there is, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """How full a multiprocessor can be with CTAs of one kernel."""

    active_ctas: int
    """CTAs that fit at once; 0 where not even one does, and a launch is refused."""
    active_warps: int
    """Warps of these."""
    max_warps: int
    """Warps that the multiprocessor holds."""
    limits: tuple[Limit, ...]
    """Every resource, the tightest first."""
    lift: str
    """What would let one more CTA in; empty where the multiprocessor is full."""

    @property
    def fraction(self) -> float:
        """Active warps ÷ warps held."""
        return self.active_warps / self.max_warps

    @property
    def limiters(self) -> tuple[str, ...]:
        """Causes of the tightest limit, in their order."""
        return tuple(one.cause for one in self.limits if one.ctas == self.limits[0].ctas)


def limits_of(architecture: str) -> MultiprocessorLimits | None:
    """Limits of an architecture, whatever letter its name ends in; None for one that is not in the table."""
    return _LIMITS.get(architecture.rstrip("af"))


def launch_occupancy(launch: LaunchProfile) -> Occupancy | None:
    """Occupancy of a launch; None where its resources or its architecture's limits are not known."""
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
    """CTAs of a kernel that fit one multiprocessor.

    Args:
        architecture: as the compiler takes it: ``sm_80``, ``sm_90a``.
        threads: threads of a CTA.
        registers: registers of a thread; 0 where they are not known, and do not limit.
        smem_bytes: shared memory of a CTA, static and dynamic together.

    Raises:
        ValueError: the architecture is not in the table.
    """
    held = limits_of(architecture)
    if held is None:
        raise ValueError(
            f"no limits are known for {architecture!r}; the table has {', '.join(_LIMITS)} and their letters"
        )
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
    each = _rounded(registers * WARP_THREADS, _REGISTER_UNIT)
    fitting = REGISTERS_PER_SM // each // _WARP_UNIT * _WARP_UNIT
    # A CTA's own warps are given registers in fours as well, so it must fit them rounded up.
    taken = _rounded(warps, _WARP_UNIT) * each
    used = f"{taken:,} of {REGISTERS_PER_SM:,} ({registers} a thread)"
    ctas = 0 if registers > MAX_REGISTERS_PER_THREAD or taken > REGISTERS_PER_SM else fitting // warps
    return (Limit(cause=REGISTERS, ctas=ctas, used=used),)


def _by_smem(held: MultiprocessorLimits, smem_bytes: int) -> Limit:
    taken = _rounded(smem_bytes + RESERVED_SMEM_BYTES, _SMEM_UNIT)
    used = f"{taken / _KIB:.4g} of {held.smem_bytes / _KIB:.4g} KiB"
    ctas = 0 if smem_bytes > held.smem_per_cta_bytes else held.smem_bytes // taken
    return Limit(cause=SHARED_MEMORY, ctas=ctas, used=used)


def _lift(held: MultiprocessorLimits, limits: list[Limit], warps: int) -> str:
    """What each of the tightest resources would have to be for one more CTA."""
    wanted = limits[0].ctas + 1
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
        room = held.smem_bytes // wanted // _SMEM_UNIT * _SMEM_UNIT - RESERVED_SMEM_BYTES
        return f"at most {room:,} bytes of shared memory a CTA"
    return "larger CTAs"


def _registers_for(ctas: int, warps: int) -> int:
    """The most registers a thread may have for this many CTAs to fit; 0 where none suffices."""
    each = REGISTERS_PER_SM // _rounded(ctas * warps, _WARP_UNIT) // _REGISTER_UNIT * _REGISTER_UNIT
    return min(each // WARP_THREADS, MAX_REGISTERS_PER_THREAD)


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit
