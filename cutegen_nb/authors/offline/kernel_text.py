"""One kernel as text, with what the module around it has to provide."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.loops import Loop, LoopNest
from cutegen_nb.authors.offline.operands import Operand
from cutegen_nb.authors.offline.plan import Kernel, Plan
from cutegen_nb.authors.offline.variants import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRequest:
    """A kernel of a plan, to be written."""

    kernel: Kernel
    """What it computes."""
    plan: Plan
    """The plan it belongs to."""
    variant: Variant
    """How far it is to be taken."""
    name: str
    """Of its launcher."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A partial result of each split of each row."""

    name: str
    """Of the part it holds."""
    dtype: str
    """As torch spells it."""
    rows_fastest: bool
    """Whether neighbours in memory belong to neighbouring rows (threads) rather than splits (lanes)."""

    @property
    def tensor(self) -> str:
        """In the kernel: ``mTotalParts``."""
        return "m" + "".join(word[:1].upper() + word[1:] for word in self.host.split("_"))

    @property
    def host(self) -> str:
        """In ``forward``."""
        return f"{self.name}_parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """One kernel with its launcher, and what the module around it must define."""

    name: str
    """Of the ``@cute.jit`` launcher."""
    source: str
    """Kernel and launcher."""
    nest: LoopNest
    """Loops that the host views the tensors for."""
    tensors: tuple[Operand, ...]
    """Arguments in order."""
    counts: tuple[str, ...]
    """Names of the numbers that follow them."""
    needed: frozenset[str]
    """View functions the launcher calls."""
    constants: dict[str, str]
    """Module-level constants by name."""
    vector: tuple[Loop, int] | None = None
    """For a kernel whose vector length the host chooses: the loop it must divide, and the largest length."""
    scratch: tuple[Scratch, ...] = ()
    """Partial results, arguments after the tensors."""
    splits: bool = False
    """Whether it leaves the partial results, so that the host allocates them before it."""
