"""One round of the loop: step, prompt, gate, author, evaluation, repair, comparison, gate."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace

from cutegen_nb.analysis.source.simplification import KIND, simplified
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import AuthorError, Declined
from cutegen_nb.core.evaluation import Evaluation, Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Action, Attempt, Decision, EndedStrategy, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.asking import background_of, prompt_of_step
from cutegen_nb.loop.counters import count_parent
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.judging import comparison_with_best, evaluate_attempt
from cutegen_nb.loop.knowledge_order import earlier_records
from cutegen_nb.loop.notes import round_note
from cutegen_nb.loop.stages import Step, next_step
from cutegen_nb.loop.steering import steered
from cutegen_nb.loop.versions import earlier_version
from cutegen_nb.prompting.memory import left_request, steering_text
from cutegen_nb.prompting.parse import Proposal, StrategyOver, parse_reply
from cutegen_nb.prompting.render import diagnose_prompt, edited_prompt, repair_prompt, retry_prompt

_MOST_ENDED = 3
"""Strategies that an author may end in one round and still be asked for the next one."""
RETRIES = 2
"""Number of further requests after an unusable reply: a model that errs twice in the form seldom recovers."""


async def run_round(  # noqa: PLR0913 - a round, its bounds, and what a replay repeats
    session: Session,
    effects: Effects,
    menu: tuple[Strategy, ...],
    *,
    repairs: int = 2,
    steps: tuple[Step, ...] = (),
    in_words: bool = False,
) -> Round:
    """Run one round of `session` and return it; nothing is stored here.

    An author may end the round's strategy with a reason instead of code; the next strategy follows in the
    same round, up to `_MOST_ENDED` times. `steps` and `in_words` are given by a replay: one step for each
    strategy, because today's rules might choose another than the recorded one, and True where the recorded
    round took every diagnosis as words, even one that held code.

    Faults of the candidate and of the reply become part of the round. Raises ConfigurationError for a missing
    setting; cancellation passes through.
    """
    started_at, start = effects.clock.now(), effects.clock.monotonic()
    written = await _written(session, effects, menu, steps)
    session, step, attempts = written.session, written.step, written.attempts
    decisions, comparison = written.decisions, None
    if attempts and attempts[-1].ended is None:
        attempts += await _repair(session, effects, attempts[-1], repairs, step, in_words=in_words)
        attempts, comparison, at_gate = await _agree_on_revision(session, effects, attempts, step)
        decisions += at_gate

    return Round(
        number=len(session.rounds),
        stage=step.stage,
        stage_because=step.because,
        chosen_because=step.chosen_because,
        strategy=step.strategy,
        attempts=tuple(attempts),
        comparison=comparison,
        decisions=tuple(decisions),
        started_at=started_at,
        seconds=round(effects.clock.monotonic() - start, 3),
        note=round_note(attempts, decisions),
        parent_profile=written.profile,
        gpu_s=_gpu_seconds(session, attempts, written.counting_s),
    )


@dataclass(slots=True, kw_only=True)
class _Written:
    """State of a round up to its first candidate; changes with each strategy that the author ends."""

    session: Session
    step: Step
    attempts: list[Attempt] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    profile: Profile | None = None
    counting_s: float = 0.0


async def _written(
    session: Session, effects: Effects, menu: tuple[Strategy, ...], steps: tuple[Step, ...]
) -> _Written:
    """Ask for one strategy after the other until the author carries one out, or none is left.

    A decision to stop at the prompt gate ends the asking too.
    """
    records = earlier_records(session, effects.knowledge)
    made = _Written(
        session=session, step=steps[0] if steps else next_step(session, menu, records, effects.target)
    )
    for turn in range(_MOST_ENDED + 1):
        counted = await count_parent(
            made.session, effects.evaluator, effects.clock, made.step, menu, records, effects.progress
        )
        made.session, made.step = counted.session, counted.step
        made.profile = counted.profile or made.profile
        made.counting_s += counted.seconds
        prompt, decisions, made.step = await _agree_on_prompt(made.session, effects, made.step, menu)
        made.decisions += decisions
        if prompt is None:
            return made
        made.attempts += await _ask_and_evaluate(made.session, effects, prompt, made.step)
        ended = made.attempts[-1].ended
        if ended is None:
            return made
        effects.progress(ended.text)
        menu = tuple(item for item in menu if item.name != ended.strategy.name)
        following = (
            steps[turn + 1]
            if turn + 1 < len(steps)
            else next_step(made.session, menu, records, effects.target)
        )
        if following.strategy is None or turn == _MOST_ENDED:
            return made
        made.step = following
    return made


def _gpu_seconds(session: Session, attempts: Sequence[Attempt], counting_s: float) -> float:
    if session.device.kind is not DeviceKind.GPU:
        return 0.0
    held = sum(attempt.evaluation.duration_s for attempt in attempts if attempt.evaluation)
    return round(held + counting_s, 3)


async def _agree_on_prompt(
    session: Session, effects: Effects, step: Step, menu: Sequence[Strategy]
) -> tuple[Prompt | None, list[Decision], Step]:
    """Render the prompt and have it approved; the prompt is None after a decision to stop.

    The step takes the strategy that the person names, if one of the menu is named. An edited request that no
    author answered in the last round is offered again as it was.
    """
    decisions: list[Decision] = []
    steering = steering_text(session)
    while True:
        step = steered(step, steering, menu)
        prompt = prompt_of_step(session, effects.words, step, steering)
        if not decisions and (left := left_request(session, step.strategy)):
            prompt = edited_prompt(prompt, left)
        decision = await _decided(effects, effects.approver.review_prompt(session, prompt))
        decisions.append(decision)
        if decision.action is Action.STOP:
            return None, decisions, step
        if decision.action is Action.EDIT:
            return edited_prompt(prompt, decision.edited), decisions, step
        if decision.action is not Action.STEER:
            return prompt, decisions, step
        steering = f"{steering}\n{decision.reason}".strip()


async def _decided(effects: Effects, asked: Awaitable[Decision]) -> Decision:
    """Await a decision and add its duration; a budget may count a person's time."""
    start = effects.clock.monotonic()
    decision = await asked
    return replace(decision, seconds=round(effects.clock.monotonic() - start, 3))


async def _ask_and_evaluate(
    session: Session, effects: Effects, prompt: Prompt, step: Step, before: Sequence[Attempt] = ()
) -> list[Attempt]:
    """Ask, and again with reply and reason while the reply is unusable; evaluate the candidate.

    `before` are the round's attempts so far.
    """
    attempts = [await _ask(session, effects, prompt)]
    while (
        (reply := attempts[-1].reply)
        and attempts[-1].candidate is None
        and attempts[-1].ended is None
        and len(attempts) <= RETRIES
    ):
        background = background_of(session, effects.words)
        again = retry_prompt(background, prompt, attempts[-1].problem, reply.text)
        attempts.append(await _ask(session, effects, again))
    attempts[-1] = await evaluate_attempt(session, effects, attempts[-1], step, before)
    return attempts


async def _ask(session: Session, effects: Effects, prompt: Prompt) -> Attempt:
    """Make one request and parse the reply; the attempt says why there is no candidate."""
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
    # A repair has no stage: the strategy was carried out before, and the reply has to be code.
    asked = prompt.strategy if prompt.stage is not None else None
    proposal = parse_reply(reply, prompt.parent.source if prompt.parent else None, may_end=asked is not None)
    if isinstance(proposal, StrategyOver) and asked is not None:
        ended = EndedStrategy(strategy=asked, end=proposal.end, reason=proposal.reason)
        return Attempt(purpose=prompt.purpose, prompt=prompt, reply=reply, problem=ended.text, ended=ended)
    if isinstance(proposal, Proposal):
        candidate = _candidate(proposal, effects.author.name, prompt)
        return Attempt(
            purpose=prompt.purpose,
            prompt=prompt,
            reply=reply,
            candidate=candidate,
            prediction=proposal.prediction,
        )
    assert not isinstance(proposal, StrategyOver)
    unusable = _not_judged(
        session, NotJudgedReason.REPLY_UNUSABLE, f"{proposal.fault.value}: {proposal.reason}"
    )
    return Attempt(
        purpose=prompt.purpose, prompt=prompt, reply=reply, problem=proposal.reason, evaluation=unusable
    )


def _purpose(prompt: Prompt) -> str:
    if prompt.purpose == "optimise" and prompt.strategy:
        return prompt.strategy.name
    return {"generate": "a first kernel", "repair": "a repair"}.get(prompt.purpose, "the reply again")


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
    return Evaluation(outcome=NotJudged(reason=reason), summary=summary, device=session.device.label)


async def _repair(  # noqa: PLR0913 - a round's state, and what a replay repeats
    session: Session, effects: Effects, last: Attempt, repairs: int, step: Step, *, in_words: bool
) -> list[Attempt]:
    """Diagnose and patch a failed candidate, at most `repairs` times; evaluate each patch.

    A diagnosis that brings the repaired kernel is the patch of its try. A repair that simplifies the kernel
    is flagged in its evaluation, and the next repair is told.
    """
    attempts: list[Attempt] = []
    background = replace(background_of(session, effects.words), steering=last.prompt.steering)
    first, flagged = last, list[str]()
    for _ in range(repairs):
        failed, evaluation = last.candidate, last.evaluation
        if failed is None or evaluation is None or evaluation.passed:
            break
        strategy = last.prompt.strategy
        asked = diagnose_prompt(background, failed, evaluation, strategy=strategy)
        diagnosis = await _diagnosis(session, effects, asked, in_words=in_words)
        attempts.append(await evaluate_attempt(session, effects, diagnosis, step, (first, *attempts)))
        if diagnosis.reply is None:
            break
        if diagnosis.candidate is None:
            words = diagnosis.reply.text
            wanted = repair_prompt(
                background, failed, evaluation, strategy=strategy, diagnosis=words, flagged=flagged
            )
            attempts += await _ask_and_evaluate(session, effects, wanted, step, (first, *attempts))
        attempts[-1] = last = _flagged(first, attempts[-1])
        flagged = (
            [item.message for item in last.evaluation.findings if item.kind == KIND]
            if last.evaluation
            else []
        )
    return attempts


def _flagged(first: Attempt, repaired: Attempt) -> Attempt:
    """Flag the repaired attempt with what it removed of the round's first kernel."""
    if first.candidate is None or repaired.candidate is None or repaired.evaluation is None:
        return repaired
    flags = simplified(
        first.candidate.source, repaired.candidate.source, first.evaluation, repaired.evaluation
    )
    if not flags:
        return repaired
    found = repaired.evaluation
    return replace(repaired, evaluation=replace(found, findings=(*found.findings, *flags)))


async def _diagnosis(session: Session, effects: Effects, prompt: Prompt, *, in_words: bool) -> Attempt:
    """Ask for a diagnosis; a reply that holds the repaired kernel has it as its candidate.

    The reply counts as words alone if its code equals the failed kernel, which is a quotation, or if its code
    cannot be read, because the repair asks for code again. With `in_words` every reply counts as words.
    """
    effects.progress(f"{effects.author.name} writes: a diagnosis")
    try:
        reply = await effects.author.write(prompt, session, effects.progress)
    except AuthorError as error:
        return Attempt(purpose=prompt.purpose, prompt=prompt, reply=None, problem=str(error))
    words = Attempt(purpose=prompt.purpose, prompt=prompt, reply=reply)
    if in_words or prompt.parent is None:
        return words
    failed = prompt.parent.source
    found = parse_reply(reply, failed)
    if not isinstance(found, Proposal) or found.source.strip() == failed.strip():
        return words
    effects.progress("the diagnosis brought the repaired kernel with it")
    candidate = _candidate(found, effects.author.name, prompt)
    return replace(words, candidate=candidate, prediction=found.prediction)


async def _agree_on_revision(
    session: Session, effects: Effects, attempts: list[Attempt], step: Step
) -> tuple[list[Attempt], Comparison | None, list[Decision]]:
    """Compare the revision and have it decided; evaluate a person's edit before it counts."""
    decisions: list[Decision] = []
    while True:
        final = _final(attempts)
        if final is None or final.candidate is None or final.evaluation is None:
            return attempts, None, decisions
        comparison = comparison_with_best(session, effects, final.candidate, final.evaluation)
        decision = await _decided(effects, effects.approver.review_revision(session, attempts, comparison))
        decisions.append(decision)
        if decision.action is Action.EDIT:
            earlier = earlier_version(attempts, decision.edited)
            made = earlier or await _persons_edit(session, effects, final.candidate, decision, step)
            attempts = [*attempts, made]
        elif decision.action is Action.OVERRULE:
            overruled = _as_passed(final.evaluation)
            return attempts, comparison_with_best(session, effects, final.candidate, overruled), decisions
        elif decision.action is not Action.STEER:
            return attempts, comparison, decisions


async def decide_again(session: Session, effects: Effects, waiting: Round) -> Round:
    """Open the revision gate again at which a person had stopped, and return the round with the decision.

    `session` holds the rounds before. The decision to stop goes; the others of the round stay.
    """
    start = effects.clock.monotonic()
    step = Step(stage=waiting.stage, strategy=waiting.strategy)
    attempts, comparison, made = await _agree_on_revision(session, effects, list(waiting.attempts), step)
    decisions = (*(item for item in waiting.decisions if item.action is not Action.STOP), *made)
    new = attempts[len(waiting.attempts) :]
    return replace(
        waiting,
        attempts=tuple(attempts),
        comparison=comparison,
        decisions=decisions,
        seconds=round(waiting.seconds + effects.clock.monotonic() - start, 3),
        note=round_note(attempts, decisions),
        gpu_s=waiting.gpu_s + _gpu_seconds(session, new, 0.0),
    )


def _as_passed(evaluation: Evaluation) -> Evaluation:
    """Evaluation with the verdict PASSED, for the comparison of an overruled candidate only."""
    flags = tuple(item for item in evaluation.findings if item.severity is Severity.FLAG)
    return replace(evaluation, outcome=Judged(verdict=Verdict.PASSED), findings=flags)


def _final(attempts: Sequence[Attempt]) -> Attempt | None:
    return next((attempt for attempt in reversed(attempts) if attempt.candidate), None)


async def _persons_edit(
    session: Session, effects: Effects, edited: Candidate, decision: Decision, step: Step
) -> Attempt:
    candidate = Candidate(
        source=decision.edited,
        author=decision.by,
        parents=decision.parents or (edited.digest,),
        strategy=edited.strategy,
        rationale=decision.reason,
    )
    prompt = Prompt(system="", user="", digest="", purpose="edit", strategy=edited.strategy, parent=edited)
    attempt = Attempt(purpose="edit", prompt=prompt, reply=None, candidate=candidate)
    return await evaluate_attempt(session, effects, attempt, step)
