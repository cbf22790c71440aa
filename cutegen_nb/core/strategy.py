"""Strategies: optimisations stated in words, apart from code."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.stage import Stage


class Bound(StrEnum):
    """Limit on a kernel's speed."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"


class Direction(StrEnum):
    """Expected direction of a counter."""

    DOWN = "down"
    UP = "up"


class Optimisation(StrEnum):
    """Optimisation that a kernel may carry out already, as its counts, machine code or source show."""

    meaning: str
    """Definition in a sentence, for requests and views."""

    def __new__(cls, name: str, meaning: str) -> Self:
        """Make a member that equals its name and carries its definition."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member

    COALESCED = ("coalesced", "Warps touch few more sectors than their bytes need.")
    VECTORS = (
        "vectors-128",
        "Nearly all bytes move by accesses of 128 bits a thread, or the widest that the size permits.",
    )
    IN_FLIGHT = ("loads-in-flight", "A thread issues several loads before it uses the first.")
    GRID_STRIDE = ("grid-stride", "CTAs walk the work with the stride of the grid.")
    ONE_KERNEL = (
        "one-kernel",
        "No intermediate tensor goes through global memory; partial sums and statistics of rows may.",
    )
    ROWS_SHARED = ("threads-share-a-row", "The threads of a warp or a CTA reduce a row together.")
    WARP_A_ROW = ("warp-a-row", "A warp reduces a row by itself, without a barrier.")
    ROW_KEPT = ("row-read-once", "Each row crosses global memory once, although several passes need it.")
    PASSES_MERGED = ("passes-merged", "One pass over a row finds all its statistics.")
    SPLIT = ("split-reduction", "Several CTAs share one sum, which atomics or a later launch complete.")
    SHARED_TILES = ("shared-tiles", "Most of the bytes loaded are staged in shared memory.")
    REGISTER_BLOCKS = ("register-blocks", "A number loaded into a register feeds several multiply-adds.")
    TENSOR_CORES = ("tensor-cores", "Products run on tensor cores.")
    PIPELINED = ("pipelined", "Loads of the next tile are under way while the present one is computed.")
    CONFLICT_FREE = ("conflict-free", "Shared memory takes no more wavefronts than its bytes need.")


class Condition(StrEnum):
    """Condition on problem, device and launch, at the problem's full size."""

    ROWS_FILL_DEVICE = "rows >= sms"
    """There are at least as many rows as multiprocessors."""
    FEW_ROWS = "rows < sms"
    """There are fewer rows than multiprocessors."""
    FEW_CTAS = "ctas < sms"
    """The kernel launches fewer CTAs than there are multiprocessors."""
    SEVERAL_WAVES = "waves >= 4"
    """The kernel launches at least four times the CTAs that the device holds at once."""
    FEW_TILES = "tiles < sms"
    """A product has fewer tiles of 128 × 128 than there are multiprocessors."""
    LONG_K = "long k"
    """A product sums at least 1,024 terms."""
    OPERANDS_REUSED = "operands are reused"
    """Each element of a product's operands serves at least 16 outputs."""
    PRODUCT_OF_FEW_ROWS = "product of few rows"
    """One operand of a product has 2 to 32 rows."""
    ROW_FITS_REGISTERS = "row_bytes <= registers"
    """A row takes at most half of the registers of one CTA."""
    ROW_EXCEEDS_REGISTERS = "row_bytes > registers"
    """A row takes more than half of the registers of one CTA."""
    ROW_FITS_SHARED = "row_bytes <= shared memory"
    """A row takes at most the shared memory of one CTA."""
    ROW_EXCEEDS_CLUSTER = "row_bytes > cluster"
    """A row takes more than the shared memory of 16 CTAs, the largest cluster."""
    SHORT_ROWS = "short rows"
    """A row has at most 4,096 elements."""
    ROWS_CONTIGUOUS = "contiguous rows"
    """The reduced dimensions are the innermost."""
    ROWS_STRIDED = "strided rows"
    """The reduced dimensions are not the innermost."""
    SEVERAL_PASSES = "several passes"
    """A row is needed again after a statistic of it is known."""
    SEVERAL_STATISTICS = "several statistics"
    """A row has several statistics, of which one needs another."""
    VECTORS_FIT = "vectors fit"
    """The innermost extent of the largest tensor is a multiple of 128 bits, and contiguous."""
    EPILOGUE = "epilogue"
    """Point-wise operations follow a product or a convolution."""
    MASK = "mask"
    """The reference masks values or takes a triangle."""
    SHORTCUT = "shortcut"
    """An identity saves a step of the reference: a product's output is summed, or an extent is 1."""
    SERIALISED_WGMMA = "serialised wgmma"
    """ptxas made each ``wgmma`` of the kernel wait for the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEffect:
    """Counter that a strategy should move, so that its claim can be checked afterwards."""

    counter: str
    """Field of :class:`~cutegen_nb.core.profile.Counters`, or ``latency_ms``."""
    direction: Direction
    """Expected direction."""


def lowers(*counters: str) -> tuple[ExpectedEffect, ...]:
    """Effects of a strategy that should lower these counters."""
    return tuple(ExpectedEffect(counter=counter, direction=Direction.DOWN) for counter in counters)


class StrategySource(StrEnum):
    """Writer of a strategy."""

    LIBRARY = "library"
    """``strategies.toml``, or the templates of the offline author."""
    MODEL = "model"
    """The author, from the evidence on one kernel."""
    PERSON = "person"
    """A person, at the gate of an epoch."""
    CROSSOVER = "crossover"
    """The author, from the strategies of two kernels."""
    HISTORY = "history"
    """Strategies that won on a like problem before, together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One optimisation, in words."""

    name: str
    """Short name, unique in its library: ``vectorise-128``."""
    statement: str
    """Instruction, in one to three sentences."""
    classes: tuple[WorkloadClass, ...] = ()
    """Workload classes that the strategy fits; empty for any."""
    bounds: tuple[Bound, ...] = ()
    """Limits under which the strategy helps; empty for any."""
    preconditions: tuple[str, ...] = ()
    """Conditions in words that no predicate checks; the author is told of them."""
    effects: tuple[ExpectedEffect, ...] = ()
    """Counters expected to move."""
    stage: Stage = Stage.STRUCTURE
    """First stage that offers the strategy: STRUCTURE, PROFILE (an answer to counters) or TUNE."""
    dtypes: tuple[str, ...] = ()
    """Computation dtypes that the strategy fits, as in the problem's facts; empty for any."""
    architectures: tuple[str, ...] = ()
    """Architectures that the strategy fits, without suffix: ``sm_80``; empty for any."""
    absent: tuple[Optimisation, ...] = ()
    """Optimisations of which none may be carried out already: they are what the strategy brings."""
    excludes: tuple[Optimisation, ...] = ()
    """Optimisations beside which the strategy makes no sense; it does not bring them."""
    present: tuple[Optimisation, ...] = ()
    """Optimisations that the strategy builds on."""
    requires: tuple[Condition, ...] = ()
    """Conditions without which the strategy is impossible or cannot win."""
    source: str = StrategySource.LIBRARY.value
    """Writer, one of `StrategySource`."""
    parents: tuple[str, ...] = ()
    """Identities of the strategies that a crossover combines."""

    @property
    def identity(self) -> str:
        """Name of a library's strategy; for any other the name with a digest of its words.

        Two authors may give one name to different strategies. A library keeps its names, and corrects its
        words now and then.
        """
        if self.source == StrategySource.LIBRARY:
            return self.name
        words = hashlib.sha256(f"{self.statement}\0{' '.join(self.parents)}".encode(errors="replace"))
        return f"{self.name}-{words.hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Strategy as a kernel that passed carries it out: the author's words, checked against the kernel."""

    statement: str
    """Restatement of what the code does, in one to four sentences."""
    by: str
    """Author of the restatement; ``features`` where it was derived from the kernel alone."""
    brought: tuple[Optimisation, ...] = ()
    """Optimisations that the kernel carries out and its parent does not."""
    lost: tuple[Optimisation, ...] = ()
    """Optimisations that the parent carries out and the kernel does not."""
    in_force: tuple[Optimisation, ...] = ()
    """All optimisations that the kernel carries out, as its counts, machine code and source show."""
    not_told: tuple[Optimisation, ...] = ()
    """Optimisations that the restatement claims, and of which nothing tells: no count, code or source."""
    unfulfilled: tuple[str, ...] = ()
    """Sentence for each optimisation that the strategy or the restatement claims and the kernel does not
    carry out, with the figure that shows it."""
