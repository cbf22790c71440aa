"""Prompts for words on strategies: cross those of two kernels, invent one, restate one from its code.

Strategies are combined in words and not as code: of two sources a model keeps one and forgets the other.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.search.knowledge import AppliedStrategy
from cutegen_nb.core.session import PromptPart
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Optimisation, Strategy
from cutegen_nb.prompting.context import PromptContext
from cutegen_nb.prompting.render import (
    class_advice,
    contract_prompt,
    history_text,
    knowledge_text,
    problem_values,
)

_CONTEXT_LINES = 3
"""Unchanged lines shown before and after a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEvidence:
    """Findings on one kernel of a population, as text."""

    revision: str
    """Name of the revision: ``r3``."""
    standing: str
    """Speed against the first kernel and against eager, or its estimate, in sentences."""
    line: tuple[AppliedStrategy, ...] = ()
    """Strategies carried out from the first kernel on, oldest first."""
    in_force: tuple[str, ...] = ()
    """Optimisations that the kernel carries out, each with its figure: ``coalesced: 98.0 % of …``."""
    lacking: tuple[str, ...] = ()
    """Optimisations that the kernel does not carry out, each with its figure."""
    not_told: tuple[str, ...] = ()
    """Names of optimisations that its author claims, and that no count, code or source shows or refutes."""
    evaluation: str = ""
    """Counts, registers and occupancy."""
    diagnosis: tuple[str, ...] = ()
    """Lines on its limit and the causes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOptimisations:
    """Optimisations of a kernel as its counts, machine code and source show, with their figures."""

    in_force: tuple[str, ...] = ()
    """Optimisations that the kernel carries out: ``coalesced: 98.0 % of …``."""
    lacking: tuple[str, ...] = ()
    """Optimisations that it does not carry out."""
    before: tuple[str, ...] = ()
    """Optimisations that its parent carries out."""

    @property
    def known(self) -> tuple[Optimisation, ...]:
        """Optimisations of which something is known."""
        names = {_optimisation(text) for text in (*self.in_force, *self.lacking)}
        return tuple(item for item in Optimisation if item.value in names)

    @property
    def lines(self) -> tuple[dict[str, object], ...]:
        """Values for a template: text of each optimisation in force, ``new`` where the parent has it not."""
        held = {_optimisation(text) for text in self.before}
        return tuple({"text": text, "new": _optimisation(text) not in held} for text in self.in_force)


def cross_prompt(  # noqa: PLR0913 - two kernels, and what bounds their child
    background: PromptContext,
    base: MemberEvidence,
    other: MemberEvidence,
    parent: Candidate,
    *,
    forbidden: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
) -> Prompt:
    """Ask for one child strategy of two kernels; no source is shown.

    `parent` is the candidate of `base`, which the child changes. `forbidden` names the strategies that a
    person forbids, `beside` those of the other slots of the epoch.
    """
    user = background.library.render(
        "cross",
        **_shared(background, forbidden, beside),
        base=_permitted(background, base),
        other=_permitted(background, other),
        differences=_differences(base, other),
        crossing=True,
    )
    crossed = (base.revision, other.revision)
    return contract_prompt(
        background,
        user,
        purpose="cross",
        parent=parent,
        stage=Stage.STRUCTURE,
        crossed=crossed,
        is_code=False,
    )


def invent_prompt(
    background: PromptContext,
    base: MemberEvidence,
    parent: Candidate,
    *,
    forbidden: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
) -> Prompt:
    """Ask for a new strategy for a kernel, from its evidence and its source."""
    user = background.library.render(
        "invent",
        **_shared(background, forbidden, beside),
        base=_permitted(background, base),
        parent=parent.source,
        advice=class_advice(background),
        crossing=False,
    )
    return contract_prompt(
        background, user, purpose="invent", parent=parent, stage=Stage.STRUCTURE, is_code=False
    )


def align_prompt(
    background: PromptContext,
    strategy: Strategy,
    parent: Candidate | None,
    candidate: Candidate,
    *,
    shown: ShownOptimisations | None = None,
) -> Prompt:
    """Ask what the code of a candidate that passed really does; without `parent` it is a first kernel.

    The request asks about the optimisations that `shown` knows, or about all without it. A person's words are
    not part of it, because it asks for facts.
    """
    user = background.library.render(
        "align",
        strategy=strategy,
        changed=parent is not None,
        code=numbered_diff(parent.source, candidate.source) if parent else candidate.source,
        optimisations=shown.known if shown else tuple(Optimisation),
        carried_out=shown.lines if shown else (),
        lacking=shown.lacking if shown else (),
    )
    factual = replace(background, steering="")
    return contract_prompt(factual, user, purpose="align", strategy=strategy, parent=parent, is_code=False)


def numbered_diff(old: str, new: str) -> str:
    """Format a unified diff whose kept and added lines bear their number in the new file."""
    before, after = old.splitlines(), new.splitlines()
    width = len(str(len(after)))
    groups = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_grouped_opcodes(_CONTEXT_LINES)
    hunks = []
    for group in groups:
        lines = []
        for tag, old_start, old_end, new_start, new_end in group:
            if tag != "equal":
                lines += [f"- {'':{width}} | {line}" for line in before[old_start:old_end]]
            mark = " " if tag == "equal" else "+"
            numbered = enumerate(after[new_start:new_end], start=new_start + 1)
            lines += [f"{mark} {number:>{width}} | {line}" for number, line in numbered]
        hunks.append("\n".join(lines))
    return "\n…\n".join(hunks) or "(no line is changed)"


def _differences(base: MemberEvidence, other: MemberEvidence) -> tuple[str, ...]:
    """Strategies and optimisations that one kernel has and the other lacks, in a line for each kernel."""
    lines = []
    for one, second in ((base, other), (other, base)):
        lacking = {_optimisation(text) for text in second.lacking}
        strategies = [item.name for item in one.line if item not in second.line]
        optimisations = [name for name in map(_optimisation, one.in_force) if name in lacking]
        parts = [
            f"the strategies {', '.join(strategies)}" if strategies else "",
            f"the optimisations {', '.join(optimisations)}" if optimisations else "",
        ]
        if any(parts):
            lines.append(f"{one.revision} alone carries out {' and '.join(filter(None, parts))}")
    return tuple(lines)


def _optimisation(text: str) -> str:
    """Name of the optimisation in ``NAME: figure``."""
    return text.partition(":")[0]


def _permitted(background: PromptContext, member: MemberEvidence) -> MemberEvidence:
    """Evidence without the diagnosis where the session's plan leaves it out."""
    without = background.session.plan.without
    return replace(member, diagnosis=()) if PromptPart.ROOFLINE in without else member


def _shared(
    background: PromptContext, forbidden: tuple[str, ...], beside: tuple[str, ...]
) -> dict[str, object]:
    """Values of the requests for a strategy: the problem, its zone, earlier rounds, the person's words."""
    floors = tuple(filter(None, (*background.floors, background.zone)))
    return {
        **problem_values(replace(background, floors=floors)),
        "tried": history_text(background),
        "knowledge": knowledge_text(background),
        "steering": background.steering,
        "forbidden": forbidden,
        "beside": beside,
        "optimisations": tuple(Optimisation),
    }
