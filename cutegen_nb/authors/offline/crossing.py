"""Child strategy of two kernels of the offline author: the strategies of both that one kernel carries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cutegen_nb.authors.offline.lineage import ancestors, lineage, steps_of
from cutegen_nb.authors.offline.same_code import same_code, twin
from cutegen_nb.authors.offline.words import labelled
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.strategy_reply import strategy_name

Code = Callable[[tuple[str, ...]], str]
"""Function that writes the kernel file with the named steps carried out, oldest first."""


def crossed(prompt: Prompt, session: Session, menu: Sequence[Strategy], author: str, code: Code) -> str:
    """State the child strategy of two kernels: what the first has and, of the second, what it lacks.

    Strategies of the second that exclude one of the first are left out, since the first is the faster one.
    Raises Declined, with one sentence on the reason, where the kernels are not the author's own, where the
    second has nothing to give, and where the child would be a kernel that there is.
    """
    first, second = _own_kernels(prompt, session, author)
    base, other = prompt.crossed
    before = lineage(first, session)
    known = {item.name for item in menu} - set(before)
    lacking = [item for item in _line(second, session) if known & set(steps_of(item, session))]
    if not lacking:
        raise Declined(f"{other} carries out no strategy that {base} lacks")
    rivals = {item.name: _rival(steps_of(item, session), before, code) for item in lacking}
    giving = [item for item in lacking if not rivals[item.name]]
    left_out = " ".join(
        f"{name} of {other} excludes {rival} of {base}, as each takes the other's place: the faster {base} "
        "keeps its own."
        for name, rival in rivals.items()
        if rival
    )
    if not giving:
        raise Declined(left_out)
    brought = known & {name for item in giving for name in steps_of(item, session)}
    taken = [item for item in menu if item.name in brought]
    _check_new(prompt.crossed, before, taken, session, code)
    kept = f"Keep {', '.join(dict.fromkeys(before))} of {base}, and take from {other}: " if before else ""
    names = " and ".join(item.name for item in taken)
    effects = dict.fromkeys(effect for item in taken for effect in item.effects)
    brings = dict.fromkeys(found.value for item in taken for found in item.absent)
    combined = dict.fromkeys(item.name for item in (*_line(first, session), *giving))
    lines = {
        "Strategy": strategy_name(f"{before[-1]} with {names}" if before else names),
        "Statement": f"{kept}{' '.join(item.statement for item in taken)} {left_out}",
        "Combines": ", ".join(combined),
        "Brings": ", ".join(brings),
        "Moves": ", ".join(f"{item.counter} {item.direction.value}" for item in effects),
    }
    return labelled(lines)


def _own_kernels(prompt: Prompt, session: Session, author: str) -> tuple[Candidate, Candidate]:
    """Return the two kernels of a request. Raises Declined for other kernels than `author`'s, and for one."""
    kernels = [_kernel(revision, session) for revision in prompt.crossed]
    others = [item.author for item in kernels if item.author != author]
    if others:
        raise Declined(
            f"the offline author crosses strategies of its own kernels only; one is by {others[0]}"
        )
    if len(kernels) != 2:  # noqa: PLR2004 - the two that are crossed
        raise Declined("the request names no two revisions whose strategies could be crossed")
    return kernels[0], kernels[1]


def _kernel(revision: str, session: Session) -> Candidate:
    made = (item.candidate for item in session.rounds if f"r{item.number}" == revision)
    found = next((item for item in made if item is not None), None)
    if found is None:
        raise Declined(f"the session has no kernel of {revision}")
    return found


def _line(kernel: Candidate, session: Session) -> list[Strategy]:
    """Return the strategies from the first kernel to `kernel`, oldest first."""
    return [item.strategy for item in ancestors(kernel, session) if item.strategy is not None]


def _rival(steps: Sequence[str], before: Sequence[str], code: Code) -> str:
    """Return the step of `before` that one of `steps` excludes; empty for none.

    Two steps exclude one another where the kernel depends on which of them comes first: each takes the
    other's place. Where one takes in the other, as tensor cores do tiles, the order makes no difference.
    """
    pairs = ((held, step) for step in steps for held in before if step not in before and held not in steps)
    return next((held for held, step in pairs if not same_code(code((held, step)), code((step, held)))), "")


def _check_new(
    revisions: tuple[str, ...],
    before: tuple[str, ...],
    taken: Sequence[Strategy],
    session: Session,
    code: Code,
) -> None:
    """Raise Declined where the child's code is that of its base, or of another kernel of the session."""
    base, other = revisions
    names = ", ".join(item.name for item in taken)
    child = code((*before, *(item.name for item in taken)))
    if same_code(child, code(before)):
        raise Declined(f"{base} does already what {names} of {other} would bring: the code stays the same")
    made = twin(child, session)
    if made is not None and f"r{made.number}" == other:
        held = ", ".join(dict.fromkeys(before))
        raise Declined(f"{other} does already what {held} of {base} does: their child would be {other} again")
    if made is not None:
        raise Declined(f"r{made.number} carries out the strategies of {base} and {other} together already")
