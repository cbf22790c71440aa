"""Generated kernels as text, with the names that their module must define."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.fused.loops import Loop, LoopNest
from cutegen_nb.authors.offline.fused.operands import Operand
from cutegen_nb.authors.offline.fused.plan import KernelPlan, PlannedKernel
from cutegen_nb.authors.offline.fused.variants import KernelVariant


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest:
    """Request for the text of one kernel of a plan."""

    kernel: PlannedKernel
    """Computation of the kernel."""
    plan: KernelPlan
    """Plan that the kernel belongs to."""
    variant: KernelVariant
    """Optimisations to apply."""
    name: str
    """Name of the launcher."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Partial result of each split of each row."""

    name: str
    """Name of the register that the partial result comes from."""
    dtype: str
    """torch's dtype name."""
    rows_fastest: bool
    """True if neighbours in memory belong to neighbouring rows (for threads), not splits (for lanes)."""
    suffix: str = "_parts"
    """End of the name in ``forward``."""

    @property
    def tensor(self) -> str:
        """Name in the kernel: ``mTotalParts``."""
        return "m" + "".join(word[:1].upper() + word[1:] for word in self.host.split("_"))

    @property
    def host(self) -> str:
        """Name in ``forward``."""
        return f"{self.name}{self.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverGrid:
    """Facts by which the host divides rows over a grid whose CTAs all run at once."""

    ctas_per_sm: int
    """CTAs that an SM holds."""
    bytes_per_cta: int
    """Bytes of a row that a CTA may have in shared memory and in its part of L2."""
    bytes_per_column: int
    """Bytes of a column of a row in the tensors that are kept."""
    meetings: int
    """Number of times that the CTAs of a row wait for one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """One kernel with its launcher, and the names that the module must define."""

    name: str
    """Name of the ``@cute.jit`` launcher."""
    source: str
    """Source of kernel and launcher."""
    nest: LoopNest
    """Loops that determine the host's views of the tensors."""
    tensors: tuple[Operand, ...]
    """Tensor arguments, in order."""
    counts: tuple[str, ...]
    """Names of the numeric arguments after the tensors."""
    needed: frozenset[str]
    """Functions that kernel and launcher call: views and merges."""
    constants: dict[str, str]
    """Module-level constants by name."""
    vector: tuple[Loop, int] | None = None
    """Loop that the vector length must divide, and the largest length, where the host chooses it; None
    otherwise."""
    scratch: tuple[Scratch, ...] = ()
    """Partial results, which are arguments after the tensors."""
    splits: bool = False
    """True if the kernel writes the partial results, so that the host allocates them before it."""
    over_grid: OverGrid | None = None
    """Facts by which the host divides the rows over the grid; None for other kernels."""
