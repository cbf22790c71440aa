"""One round as a straight line: prompt, gate, author, proposal, evaluation, repair, comparison, gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_nb.analysis.compare import compare
from cutegen_nb.analysis.diagnose import diagnose
from cutegen_nb.analysis.roofline import place
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import AuthorError, Declined, EvaluatorError
from cutegen_nb.core.evaluation import Evaluation, Judged, NotJudged, NotJudgedReason, Tier, Verdict
from cutegen_nb.core.ports import Approver, Author, Clock, Evaluator, Progress
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Reply, Round, Stage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.lineage import next_strategy, parent_of_next
from cutegen_nb.prompting.feedback import steering_text
from cutegen_nb.prompting.library import PromptLibrary
from cutegen_nb.prompting.parse import Proposal, parse_reply
from cutegen_nb.prompting.render import (
    Background,
    diagnose_prompt,
    edited_prompt,
    first_prompt,
    optimise_prompt,
    repair_prompt,
    retry_prompt,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Everything a round does to the world, chosen in wiring."""

    author: Author
    """Who writes."""
    evaluator: Evaluator
    """Where candidates run."""
    approver: Approver
    """Who decides."""
    clock: Clock
    """Time."""
    library: PromptLibrary
    """Templates."""
    progress: Progress
    """Told what is being done now."""


async def run_round(
    session: Session, effects: Effects, menu: tuple[Strategy, ...], *, repairs: int = 2
) -> Round:
    """Run one round of `session` and give it back; nothing is stored here.

    Every fault of the candidate and of the reply is part of the round. Raises ConfigurationError for a
    missing setting; cancellation passes through.
    """
    started_at, start = effects.clock.now(), effects.clock.monotonic()
    parent = parent_of_next(session)
    strategy = next_strategy(session, menu, parent) if parent else None
    attempts: list[Attempt] = []
    comparison: Comparison | None = None

    prompt, decisions = await _agree_on_prompt(session, effects, parent, strategy)
    if prompt is not None:
        attempts += await _ask_and_evaluate(session, effects, prompt)
        attempts += await _repair(session, effects, attempts[-1], repairs)
        attempts, comparison, at_gate = await _agree_on_revision(session, effects, attempts)
        decisions += at_gate

    return Round(
        number=len(session.rounds),
        stage=Stage.CORRECT if parent is None else Stage.STRUCTURE,
        strategy=strategy,
        attempts=tuple(attempts),
        comparison=comparison,
        decisions=tuple(decisions),
        started_at=started_at,
        seconds=round(effects.clock.monotonic() - start, 3),
        note=_note(attempts, decisions),
    )


async def _agree_on_prompt(
    session: Session, effects: Effects, parent: Round | None, strategy: Strategy | None
) -> tuple[Prompt | None, list[Decision]]:
    """Render the prompt and have it approved. None in its place when somebody said stop."""
    decisions: list[Decision] = []
    steering = steering_text(session)
    background = _background(session, effects, parent)
    while True:
        prompt = _prompt(background, parent, strategy, steering)
        decision = await effects.approver.review_prompt(session, prompt)
        decisions.append(decision)
        if decision.action is Action.STOP:
            return None, decisions
        if decision.action is Action.EDIT:
            return edited_prompt(prompt, decision.edited), decisions
        if decision.action is not Action.STEER:
            return prompt, decisions
        steering = f"{steering}\n{decision.reason}".strip()


def _background(session: Session, effects: Effects, parent: Round | None) -> Background:
    evaluation = parent.evaluation if parent else None
    roof = place(session.facts, session.device)
    return Background(
        library=effects.library,
        session=session,
        floor_ms=roof.floor_ms,
        bound=roof.bound,
        diagnosis=diagnose(session.facts, evaluation, session.device).text() if evaluation else (),
    )


def _prompt(background: Background, parent: Round | None, strategy: Strategy | None, steering: str) -> Prompt:
    if parent is None or strategy is None:
        return first_prompt(background, steering)
    return optimise_prompt(background, parent, strategy, steering)


async def _ask_and_evaluate(session: Session, effects: Effects, prompt: Prompt) -> list[Attempt]:
    """Ask once, and once more with the reason when the reply cannot be used; evaluate what came."""
    attempts = [await _ask(session, effects, prompt)]
    if attempts[-1].reply is not None and attempts[-1].candidate is None:
        again = retry_prompt(_background(session, effects, None), prompt, attempts[-1].problem)
        attempts.append(await _ask(session, effects, again))
    attempts[-1] = await _evaluate(session, effects, attempts[-1])
    return attempts


async def _ask(session: Session, effects: Effects, prompt: Prompt) -> Attempt:
    """One exchange: the reply taken apart, or why there is none."""
    effects.progress(f"{effects.author.name} writes: {_purpose(prompt)}")
    try:
        reply = await effects.author.write(prompt, session, effects.progress)
    except Declined as error:
        declined = _not_judged(session, NotJudgedReason.DECLINED, str(error))
        return Attempt(
            purpose=prompt.purpose, prompt=prompt, reply=None, problem=str(error), evaluation=declined
        )
    except AuthorError as error:
        return Attempt(purpose=prompt.purpose, prompt=prompt, reply=None, problem=str(error))
    proposal = parse_reply(reply, prompt.parent.source if prompt.parent else None)
    if isinstance(proposal, Proposal):
        candidate = _candidate(proposal, effects.author.name, prompt)
        return Attempt(purpose=prompt.purpose, prompt=prompt, reply=reply, candidate=candidate)
    unusable = _not_judged(
        session, NotJudgedReason.REPLY_UNUSABLE, f"{proposal.fault.value}: {proposal.reason}"
    )
    return Attempt(
        purpose=prompt.purpose, prompt=prompt, reply=reply, problem=proposal.reason, evaluation=unusable
    )


def _purpose(prompt: Prompt) -> str:
    if prompt.purpose == "optimise" and prompt.strategy:
        return prompt.strategy.name
    return {"generate": "a first kernel", "diagnose": "a diagnosis", "repair": "a repair"}.get(
        prompt.purpose, "the reply again"
    )


def _candidate(proposal: Proposal, author: str, prompt: Prompt) -> Candidate:
    return Candidate(
        source=proposal.source,
        author=author,
        parents=(prompt.parent.digest,) if prompt.parent else (),
        strategy=prompt.strategy,
        rationale=proposal.rationale,
        prompt_digest=prompt.digest,
    )


def _not_judged(session: Session, reason: NotJudgedReason, summary: str) -> Evaluation:
    return Evaluation(outcome=NotJudged(reason=reason), summary=summary, device=session.device.name)


async def _evaluate(session: Session, effects: Effects, attempt: Attempt) -> Attempt:
    """The attempt with what became of its candidate; with our fault in `problem` when we could not tell.

    A candidate that would become the best is looked at more closely first, and that evaluation counts.
    """
    if attempt.candidate is None:
        return attempt
    evaluator, problem = effects.evaluator, session.problem
    try:
        found = await evaluator.evaluate(problem, attempt.candidate, effects.progress)
        comparison = _comparison(session, found)
        if comparison is not None and comparison.relation.is_better:
            effects.progress("looking closer: it may become the best")
            found = await evaluator.evaluate(problem, attempt.candidate, effects.progress, Tier.B)
    except EvaluatorError as error:
        return replace(attempt, problem=str(error))
    return replace(attempt, evaluation=found)


async def _repair(session: Session, effects: Effects, last: Attempt, repairs: int) -> list[Attempt]:
    """Diagnose and patch a failed candidate, at most `repairs` times, each evaluated."""
    attempts: list[Attempt] = []
    background = _background(session, effects, None)
    for _ in range(repairs):
        failed, evaluation = last.candidate, last.evaluation
        if failed is None or evaluation is None or evaluation.passed:
            break
        strategy, steering = last.prompt.strategy, steering_text(session)
        asked = diagnose_prompt(background, failed, evaluation, strategy=strategy, steering=steering)
        diagnosis = await _diagnosis(session, effects, asked)
        attempts.append(diagnosis)
        if diagnosis.reply is None:
            break
        wanted = repair_prompt(
            background, failed, evaluation, strategy=strategy, diagnosis=diagnosis.reply.text
        )
        attempts += await _ask_and_evaluate(session, effects, wanted)
        last = attempts[-1]
    return attempts


async def _diagnosis(session: Session, effects: Effects, prompt: Prompt) -> Attempt:
    """Words only: nothing is parsed and nothing evaluated."""
    effects.progress(f"{effects.author.name} writes: a diagnosis")
    reply: Reply | None = None
    problem = ""
    try:
        reply = await effects.author.write(prompt, session, effects.progress)
    except AuthorError as error:
        problem = str(error)
    return Attempt(purpose=prompt.purpose, prompt=prompt, reply=reply, problem=problem)


async def _agree_on_revision(
    session: Session, effects: Effects, attempts: list[Attempt]
) -> tuple[list[Attempt], Comparison | None, list[Decision]]:
    """Compare and have the revision decided; a person's own edit is evaluated before it counts."""
    decisions: list[Decision] = []
    while True:
        final = _final(attempts)
        if final is None or final.candidate is None or final.evaluation is None:
            return attempts, None, decisions
        comparison = _comparison(session, final.evaluation)
        decision = await effects.approver.review_revision(session, attempts, comparison)
        decisions.append(decision)
        if decision.action is Action.EDIT:
            attempts = [*attempts, await _persons_edit(session, effects, final.candidate, decision)]
        elif decision.action is Action.OVERRULE:
            return attempts, _comparison(session, _as_passed(final.evaluation)), decisions
        elif decision.action is not Action.STEER:
            return attempts, comparison, decisions


def _as_passed(evaluation: Evaluation) -> Evaluation:
    """For the comparison alone: a person overruled the verdict, which stays in the record."""
    return replace(evaluation, outcome=Judged(verdict=Verdict.PASSED))


def _final(attempts: Sequence[Attempt]) -> Attempt | None:
    return next((attempt for attempt in reversed(attempts) if attempt.candidate), None)


def _comparison(session: Session, evaluation: Evaluation) -> Comparison | None:
    """Against the best so far; None for a candidate that did not pass."""
    if not evaluation.passed:
        return None
    best = session.best
    found = compare(best.evaluation if best else None, evaluation, session.facts)
    return replace(found, against=best.candidate.digest if best and best.candidate else "")


async def _persons_edit(session: Session, effects: Effects, edited: Candidate, decision: Decision) -> Attempt:
    candidate = Candidate(
        source=decision.edited,
        author=decision.by,
        parents=(edited.digest,),
        strategy=edited.strategy,
        rationale=decision.reason,
    )
    prompt = Prompt(system="", user="", digest="", purpose="edit", strategy=edited.strategy, parent=edited)
    attempt = Attempt(purpose="edit", prompt=prompt, reply=None, candidate=candidate)
    return await _evaluate(session, effects, attempt)


def _note(attempts: Sequence[Attempt], decisions: Sequence[Decision]) -> str:
    if any(attempt.candidate and attempt.evaluation for attempt in attempts):
        return ""
    if attempts:
        return attempts[-1].problem
    return f"stopped at the {decisions[-1].gate} gate" if decisions else ""
