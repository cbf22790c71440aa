"""Alignment of a strategy: its restatement from the code, checked against the kernel's traits.

A kernel's counts, machine code and source may deny what its author says of it. Where they tell nothing, the
author's words stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits
from cutegen_nb.analysis.strategy.optimisations import in_force
from cutegen_nb.core.strategy import Alignment, Optimisation, Strategy

FEATURES = "features"
"""Author of a statement that was derived from traits alone."""

_Figures = dict[Optimisation, str]
"""Figure in words by optimisation."""


def optimisations_in_force(traits: KernelTraits) -> tuple[Optimisation, ...]:
    """List the optimisations that a kernel carries out, as its counts, machine code and source show."""
    return tuple(_told(traits, holds=True))


def align(  # noqa: PLR0913 - a strategy, two kernels and an author's words
    strategy: Strategy,
    parent: KernelTraits | None,
    kernel: KernelTraits,
    *,
    statement: str,
    carries: Sequence[Optimisation],
    by: str,
) -> Alignment:
    """Align a strategy with the kernel that was to carry it out.

    `statement` and `carries` are the author's restatement and the optimisations that it claims; `by` names
    the author. An empty statement is derived from the traits. Optimisations that the traits deny, of those
    claimed and of those that the strategy brings, are corrected in a sentence after the statement. Claims of
    which nothing tells are listed, and are neither brought nor unfulfilled. `parent`
    is None for a first kernel, which brings all that it carries out.
    """
    held, denied = _told(kernel, holds=True), _told(kernel, holds=False)
    held_before = _told(parent, holds=True) if parent else {}
    denied_before = _told(parent, holds=False) if parent else denied | held
    brought = {item: figure for item, figure in held.items() if item in denied_before}
    lost = {item: figure for item, figure in denied.items() if item in held_before}
    claimed = dict.fromkeys((*carries, *strategy.absent))
    missing = {item: denied[item] for item in claimed if item in denied}
    words = " ".join(statement.split())
    return Alignment(
        statement=" ".join(filter(None, [words or _derived(brought, lost, held), _correction(missing)])),
        by=by if words else FEATURES,
        brought=tuple(brought),
        lost=tuple(lost),
        in_force=tuple(held),
        not_told=tuple(item for item in dict.fromkeys(carries) if item not in held and item not in denied),
        unfulfilled=tuple(
            f"{item.value} is {'claimed' if item in carries else 'promised'}, but {figure}"
            for item, figure in missing.items()
        ),
    )


def statement_of(strategy: Strategy, aligned: Alignment | None) -> str:
    """Return the words that tell a reader what a kernel does for a strategy.

    These are the author's restatement. Where nobody restated it, the strategy's own statement comes first,
    because traits alone name no idea, and then what the traits show to have changed.
    """
    if aligned is None:
        return strategy.statement
    if aligned.by != FEATURES:
        return aligned.statement
    changed = aligned.statement if aligned.brought or aligned.lost else ""
    return " ".join(filter(None, [strategy.statement, changed]))


def _told(traits: KernelTraits, *, holds: bool) -> _Figures:
    """Figures of the optimisations that a kernel carries out, or of those that it does not."""
    answers = ((item, in_force(item, traits)) for item in Optimisation)
    return {item: answer[1] for item, answer in answers if answer is not None and answer[0] is holds}


def _derived(brought: _Figures, lost: _Figures, held: _Figures) -> str:
    """Statement on a kernel whose author gave none."""
    sentences = [f"The kernel now carries out {_listed(brought)}."] if brought else []
    sentences += [f"It no longer carries out {_listed(lost)}."] if lost else []
    if sentences:
        return " ".join(sentences)
    if held:
        return f"The kernel carries out the same optimisations as its parent: {_listed(held)}."
    return "Counts, machine code and source show no optimisation."


def _correction(missing: _Figures) -> str:
    if not missing:
        return ""
    return f"Correction from the kernel's features: it does not carry out {_listed(missing)}."


def _listed(figures: _Figures) -> str:
    """Format ``vectors-128 (…), coalesced (…) and pipelined (…)``."""
    items = [f"{item.value} ({figure})" for item, figure in figures.items()]
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]]))
