"""Round of an epoch: state a strategy where the move asks for one, write the kernel, align the strategy."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from cutegen_nb.analysis.strategy.alignment import align
from cutegen_nb.core.errors import AuthorError
from cutegen_nb.core.round import Attempt, Prompt, Reply, Round
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Alignment, Strategy, StrategySource
from cutegen_nb.loop.asking import background_of
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.lineage import line_of
from cutegen_nb.loop.population.evidence import kernel_traits_of, member_evidence, shown_optimisations
from cutegen_nb.loop.population.planning import PlannedSlot, applied_names, forbidden
from cutegen_nb.loop.round import RETRIES, run_round
from cutegen_nb.loop.stages import Step
from cutegen_nb.prompting.render import retry_prompt
from cutegen_nb.prompting.reply_faults import Unusable, told
from cutegen_nb.prompting.strategy_prompts import align_prompt, cross_prompt, invent_prompt
from cutegen_nb.prompting.strategy_reply import (
    NoStrategy,
    StatedAlignment,
    StatedStrategy,
    parse_alignment,
    parse_strategy,
    strategy_name,
)

_NEAR_NAME = 0.8
"""Likeness from which a strategy that a reply names is taken for a known one."""


async def run_slot(  # noqa: PLR0913 - a slot, its bounds, and what a replay repeats
    session: Session,
    effects: Effects,
    planned: PlannedSlot,
    *,
    repairs: int = 2,
    beside: tuple[str, ...] = (),
    in_words: bool = False,
) -> Round:
    """Run one slot of an epoch and return its round; nothing is stored here.

    `session` is the one at the start of the epoch; `beside` names the strategies of its other slots;
    `in_words` is that of `run_round`. Raises ConfigurationError for a missing setting; cancellation passes
    through.
    """
    started_at, start = effects.clock.now(), effects.clock.monotonic()
    stated: list[Attempt] = []
    strategy, note = planned.strategy, ""
    if strategy is None:
        strategy, stated, note = await _stated(session, effects, planned, beside)
    if strategy is None:
        return Round(
            number=len(session.rounds),
            stage=planned.stage,
            strategy=None,
            attempts=tuple(stated),
            comparison=None,
            decisions=(),
            started_at=started_at,
            seconds=round(effects.clock.monotonic() - start, 3),
            note=note,
            slot=planned.slot,
        )
    offered = ((strategy, planned.stage), *planned.others)
    steps = tuple(
        Step(
            stage=stage,
            parent=planned.base,
            strategy=item,
            chosen_because=planned.because if item is strategy else "",
            # After the last strategy the slot ends.
            in_slot=place == len(offered),
        )
        for place, (item, stage) in enumerate(offered, start=1)
    )
    finished = await run_round(session, effects, (), repairs=repairs, steps=steps, in_words=in_words)
    finished = _with_parents(finished, planned)
    aligned, asked = await _aligned(session, effects, finished, planned)
    return replace(
        finished,
        attempts=(*stated, *finished.attempts, *asked),
        started_at=started_at,
        seconds=round(effects.clock.monotonic() - start, 3),
        slot=planned.slot,
        aligned=aligned,
    )


async def _stated(
    session: Session, effects: Effects, planned: PlannedSlot, beside: tuple[str, ...]
) -> tuple[Strategy | None, list[Attempt], str]:
    """Ask for a strategy, and again where the reply states none; None where none does, with the reason.

    A reply that finds nothing to take over from the other parent ends the slot with its reason.
    """
    background = background_of(session, effects.words)
    parent = planned.base.candidate
    assert parent is not None
    base, banned = member_evidence(session, planned.base, effects.target), forbidden(session)
    if planned.other is not None:
        other = member_evidence(session, planned.other, effects.target)
        prompt = cross_prompt(background, base, other, parent, forbidden=banned, beside=beside)
    else:
        prompt = invent_prompt(background, base, parent, forbidden=banned, beside=beside)
    attempts, note = list[Attempt](), ""
    for asked in range(1, RETRIES + 2):
        attempt = await _answer(session, effects, prompt)
        if attempt.reply is None:
            return None, [*attempts, attempt], attempt.problem
        stated = parse_strategy(attempt.reply, may_decline=planned.other is not None)
        if isinstance(stated, StatedStrategy):
            return _strategy(session, stated, planned), [*attempts, attempt], ""
        if isinstance(stated, NoStrategy):
            reason = f"nothing to take over from the other kernel: {stated.reason}"
            return None, [*attempts, replace(attempt, problem=reason)], reason
        attempts.append(replace(attempt, problem=stated.reason))
        note = told(stated.fault, attempt.reply, asked)
        prompt = retry_prompt(background, prompt, stated.reason, attempt.reply.text)
    return None, attempts, note


async def _answer(session: Session, effects: Effects, prompt: Prompt) -> Attempt:
    """Make a request for words; the attempt says why there is no reply."""
    what = {"cross": "a strategy of two parents", "invent": "a strategy of its own"}
    effects.progress(f"{effects.author.name} writes: {what.get(prompt.purpose, 'what the code does')}")
    reply: Reply | None = None
    problem = ""
    try:
        reply = await effects.author.write(prompt, session, effects.progress)
    except AuthorError as error:
        problem = str(error)
    return Attempt(purpose=prompt.purpose, prompt=prompt, reply=reply, problem=problem)


def _strategy(session: Session, stated: StatedStrategy, planned: PlannedSlot) -> Strategy:
    """Make the stated strategy one of the session, under a name that no other strategy has."""
    crossed = planned.slot.move is MoveKind.CROSS
    strategy = Strategy(
        name=stated.name,
        statement=stated.statement,
        effects=stated.effects,
        absent=stated.brings,
        source=(StrategySource.CROSSOVER if crossed else StrategySource.MODEL).value,
        parents=_combined(session, stated, planned) if crossed else (),
    )
    others = {
        item.strategy.name
        for item in session.rounds
        if item.strategy and item.strategy.identity != strategy.identity
    }
    name, number = strategy.name, 1
    while name in others:
        number += 1
        name = f"{strategy.name}-{number}"
    return replace(strategy, name=name)


def _combined(session: Session, stated: StatedStrategy, planned: PlannedSlot) -> tuple[str, ...]:
    """Identities of the strategies that a crossover combines: those it names, else all its base lacks."""
    assert planned.other is not None
    lines = [*line_of(session, planned.other), *line_of(session, planned.base)]
    known = {strategy_name(item.strategy.name): item.strategy.identity for item in lines if item.strategy}
    named = [get_close_matches(name, known, n=1, cutoff=_NEAR_NAME) for name in stated.combines]
    found = [known[match[0]] for match in named if match]
    if not found:
        lacking = applied_names(session, planned.other) - applied_names(session, planned.base)
        found = [known.get(name, name) for name in sorted(lacking)]
    return tuple(dict.fromkeys(found))


def _with_parents(finished: Round, planned: PlannedSlot) -> Round:
    """Record both parents of a crossover in its candidates."""
    if planned.other is None or planned.other.candidate is None:
        return finished
    base, other = planned.slot.parents
    attempts = tuple(
        replace(attempt, candidate=replace(attempt.candidate, parents=(base, other)))
        if attempt.candidate is not None and attempt.candidate.parents == (base,)
        else attempt
        for attempt in finished.attempts
    )
    return replace(finished, attempts=attempts)


async def _aligned(
    session: Session, effects: Effects, finished: Round, planned: PlannedSlot
) -> tuple[Alignment | None, list[Attempt]]:
    """Have the author restate what a kernel that passed does, and check it against the kernel.

    Without a usable restatement the alignment is derived from the kernel alone.
    """
    candidate, strategy = finished.candidate, finished.strategy
    if candidate is None or strategy is None or finished.evaluation is None or not finished.evaluation.passed:
        return None, []
    background = background_of(session, effects.words)
    shown = shown_optimisations(session, finished, planned.base)
    prompt = align_prompt(background, strategy, planned.base.candidate, candidate, shown=shown)
    attempts, usable = await _restated(session, effects, prompt)
    found = align(
        strategy,
        kernel_traits_of(session, planned.base),
        kernel_traits_of(session, finished),
        statement=usable.statement if usable else "",
        carries=usable.carries if usable else (),
        by=effects.author.name if usable else "features",
    )
    return found, attempts


async def _restated(
    session: Session, effects: Effects, prompt: Prompt
) -> tuple[list[Attempt], StatedAlignment | None]:
    """Ask for a restatement, and again with the reason while it is unusable; None where it stays so."""
    attempts: list[Attempt] = []
    asked = prompt
    for _ in range(1 + RETRIES):
        attempt = await _answer(session, effects, asked)
        parsed = parse_alignment(attempt.reply) if attempt.reply else None
        if attempt.reply is None or not isinstance(parsed, Unusable):
            return [*attempts, attempt], parsed if isinstance(parsed, StatedAlignment) else None
        attempts.append(replace(attempt, problem=parsed.reason))
        background = background_of(session, effects.words)
        asked = retry_prompt(background, prompt, parsed.reason, attempt.reply.text)
    return attempts, None


def aligned_first(session: Session, finished: Round) -> Alignment | None:
    """Derive the alignment of a first kernel from the kernel alone; None where it did not pass."""
    if finished.candidate is None or finished.evaluation is None or not finished.evaluation.passed:
        return None
    first = Strategy(name="first-kernel", statement="The first kernel that is correct.")
    traits = kernel_traits_of(session, finished)
    return align(first, None, traits, statement="", carries=(), by="features")
