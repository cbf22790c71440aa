"""Replies of the offline author in words: two strategies crossed, and a strategy restated."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.authors.offline.lineage import ancestors, lineage, steps_of
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.strategy_reply import strategy_name


def crossed(prompt: Prompt, session: Session, menu: Sequence[Strategy], author: str) -> str:
    """State the child strategy of two kernels: what the first has and, of the second, what it lacks.

    Raises Declined where the kernels are not the author's own, or the second has nothing to give.
    """
    kernels = [_kernel(revision, session) for revision in prompt.crossed]
    others = [item.author for item in kernels if item.author != author]
    if others:
        raise Declined(
            f"the offline author crosses strategies of its own kernels only; one is by {others[0]}"
        )
    if len(kernels) != 2:  # noqa: PLR2004 - the two that are crossed
        raise Declined("the request names no two revisions whose strategies could be crossed")
    base, other = prompt.crossed
    before, given = (lineage(item, session) for item in kernels)
    taken = [item for item in menu if item.name in given and item.name not in before]
    if not taken:
        raise Declined(f"{other} carries out no strategy that {base} lacks")
    kept = f"Keep {', '.join(dict.fromkeys(before))} of {base}, and take from {other}: " if before else ""
    names = " and ".join(item.name for item in taken)
    effects = dict.fromkeys(effect for item in taken for effect in item.effects)
    brings = dict.fromkeys(found.value for item in taken for found in item.absent)
    lines = {
        "Strategy": strategy_name(f"{before[-1]} with {names}" if before else names),
        "Statement": kept + " ".join(item.statement for item in taken),
        "Combines": ", ".join(_combined(kernels, taken, session)),
        "Brings": ", ".join(brings),
        "Moves": ", ".join(f"{item.counter} {item.direction.value}" for item in effects),
    }
    return _text(lines)


def restated(strategy: Strategy | None) -> str:
    """Restate a strategy as done: the templates do what its statement says. Raises Declined without one."""
    if strategy is None:
        raise Declined("the request names no strategy to restate")
    carries = ", ".join(item.value for item in strategy.absent)
    return _text({"Done": strategy.statement, "Carries": carries, "Not done": ""})


def _kernel(revision: str, session: Session) -> Candidate:
    made = (item.candidate for item in session.rounds if f"r{item.number}" == revision)
    found = next((item for item in made if item is not None), None)
    if found is None:
        raise Declined(f"the session has no kernel of {revision}")
    return found


def _combined(kernels: Sequence[Candidate], taken: Sequence[Strategy], session: Session) -> list[str]:
    """Names of the strategies of the first kernel, and of those of the second that hold a step of `taken`."""
    steps = {item.name for item in taken}
    first, second = (
        [item.strategy for item in ancestors(kernel, session) if item.strategy is not None]
        for kernel in kernels
    )
    giving = [item for item in second if steps & set(steps_of(item, session))]
    return list(dict.fromkeys(item.name for item in (*first, *giving)))


def _text(lines: dict[str, str]) -> str:
    return "".join(f"{label}: {' '.join(value.split()) or 'none'}\n" for label, value in lines.items())
