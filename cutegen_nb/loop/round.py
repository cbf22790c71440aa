"""One round as a straight line: step, prompt, gate, author, evaluation, repair, comparison, gate."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from cutegen_nb.analysis.compare import compare
from cutegen_nb.analysis.roofline import held_to_roof
from cutegen_nb.analysis.simplification import KIND, simplified
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import AuthorError, Declined, EvaluatorError
from cutegen_nb.core.evaluation import Evaluation, Judged, NotJudged, NotJudgedReason, Tier, Verdict
from cutegen_nb.core.ports import Approver, Author, Clock, Evaluator, Guide, Progress
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Reply, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.asking import WITH_COUNTERS, Words, background_of, prompt_of_step
from cutegen_nb.loop.counters import Counted, count_parent
from cutegen_nb.loop.stages import Step, next_step
from cutegen_nb.prompting.library import PromptLibrary
from cutegen_nb.prompting.memory import steering_text
from cutegen_nb.prompting.parse import Proposal, parse_reply
from cutegen_nb.prompting.render import diagnose_prompt, edited_prompt, no_guide, repair_prompt, retry_prompt


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
    guide: Guide = no_guide
    """Chapters of the CuTe DSL guide for a request."""
    environment: dict[str, str] = field(default_factory=dict)
    """Versions of what runs here, for a new session's record."""

    @property
    def words(self) -> Words:
        """Where the words of its prompts come from."""
        return Words(library=self.library, guide=self.guide)


async def run_round(
    session: Session,
    effects: Effects,
    menu: tuple[Strategy, ...],
    *,
    repairs: int = 2,
    step: Step | None = None,
) -> Round:
    """Run one round of `session` and give it back; nothing is stored here.

    `step` is what a replay repeats: what a session tries next may be decided by other rules by then.

    Every fault of the candidate and of the reply is part of the round. Raises ConfigurationError for a
    missing setting; cancellation passes through.
    """
    started_at, start = effects.clock.now(), effects.clock.monotonic()
    step = step or next_step(session, menu)
    counted = await count_parent(session, effects.evaluator, effects.clock, step, menu, effects.progress)
    session, step = counted.session, counted.step
    attempts: list[Attempt] = []
    comparison: Comparison | None = None

    prompt, decisions = await _agree_on_prompt(session, effects, step)
    if prompt is not None:
        attempts += await _ask_and_evaluate(session, effects, prompt, step)
        attempts += await _repair(session, effects, attempts[-1], repairs, step)
        attempts, comparison, at_gate = await _agree_on_revision(session, effects, attempts, step)
        decisions += at_gate

    return Round(
        number=len(session.rounds),
        stage=step.stage,
        stage_because=step.because,
        strategy=step.strategy,
        attempts=tuple(attempts),
        comparison=comparison,
        decisions=tuple(decisions),
        started_at=started_at,
        seconds=round(effects.clock.monotonic() - start, 3),
        note=_note(attempts, decisions),
        parent_profile=counted.profile,
        gpu_s=_gpu_seconds(session, attempts, counted),
    )


def _gpu_seconds(session: Session, attempts: Sequence[Attempt], counted: Counted) -> float:
    if session.device.kind is not DeviceKind.GPU:
        return 0.0
    held = sum(attempt.evaluation.duration_s for attempt in attempts if attempt.evaluation)
    return round(held + counted.seconds, 3)


async def _agree_on_prompt(
    session: Session, effects: Effects, step: Step
) -> tuple[Prompt | None, list[Decision]]:
    """Render the prompt and have it approved. None in its place when somebody said stop."""
    decisions: list[Decision] = []
    steering = steering_text(session)
    while True:
        prompt = prompt_of_step(session, effects.words, step, steering)
        decision = await _decided(effects, effects.approver.review_prompt(session, prompt))
        decisions.append(decision)
        if decision.action is Action.STOP:
            return None, decisions
        if decision.action is Action.EDIT:
            return edited_prompt(prompt, decision.edited), decisions
        if decision.action is not Action.STEER:
            return prompt, decisions
        steering = f"{steering}\n{decision.reason}".strip()


async def _decided(effects: Effects, asked: Awaitable[Decision]) -> Decision:
    """The decision, with how long it took: a budget may count a person's time."""
    start = effects.clock.monotonic()
    decision = await asked
    return replace(decision, seconds=round(effects.clock.monotonic() - start, 3))


async def _ask_and_evaluate(session: Session, effects: Effects, prompt: Prompt, step: Step) -> list[Attempt]:
    """Ask once, and once more with the reason when the reply cannot be used; evaluate what came."""
    attempts = [await _ask(session, effects, prompt)]
    if attempts[-1].reply is not None and attempts[-1].candidate is None:
        again = retry_prompt(background_of(session, effects.words), prompt, attempts[-1].problem)
        attempts.append(await _ask(session, effects, again))
    attempts[-1] = await _evaluate(session, effects, attempts[-1], step)
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
        return Attempt(
            purpose=prompt.purpose,
            prompt=prompt,
            reply=reply,
            candidate=candidate,
            prediction=proposal.prediction,
        )
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


async def _evaluate(session: Session, effects: Effects, attempt: Attempt, step: Step) -> Attempt:
    """The attempt with what became of its candidate; with our fault in `problem` when we could not tell.

    A candidate that would become the best is looked at more closely first, and that evaluation counts; it
    has a GPU's counters where the stage tells them.
    """
    if attempt.candidate is None:
        return attempt
    counted = step.stage in WITH_COUNTERS and session.device.kind is DeviceKind.GPU
    evaluate, problem = effects.evaluator.evaluate, session.problem
    rival = _rival(session)
    if rival is not None:
        evaluate = partial(evaluate, rival=rival)
    try:
        found = _held(session, await evaluate(problem, attempt.candidate, effects.progress))
        comparison = _comparison(session, found)
        if comparison is not None and comparison.relation.is_better:
            effects.progress("looking closer: it may become the best")
            look = partial(evaluate, profile=True) if counted else evaluate
            closer = _held(session, await look(problem, attempt.candidate, effects.progress, Tier.B))
            found = replace(closer, duration_s=found.duration_s + closer.duration_s)
    except EvaluatorError as error:
        return replace(attempt, problem=str(error))
    return replace(attempt, evaluation=found)


def _held(session: Session, found: Evaluation) -> Evaluation:
    return held_to_roof(session.facts, session.device, found)


def _rival(session: Session) -> Candidate | None:
    """What a candidate is timed beside: the best before it; None where that has no time."""
    best = session.best
    return best.candidate if best and best.evaluation and best.evaluation.timing else None


async def _repair(
    session: Session, effects: Effects, last: Attempt, repairs: int, step: Step
) -> list[Attempt]:
    """Diagnose and patch a failed candidate, at most `repairs` times, each evaluated.

    What a repair gives up of the kernel is flagged in its evaluation and told to the next repair.
    """
    attempts: list[Attempt] = []
    background = background_of(session, effects.words)
    first, flagged = last, list[str]()
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
        words = diagnosis.reply.text
        wanted = repair_prompt(
            background, failed, evaluation, strategy=strategy, diagnosis=words, flagged=flagged
        )
        attempts += await _ask_and_evaluate(session, effects, wanted, step)
        attempts[-1] = last = _flagged(first, attempts[-1])
        flagged = (
            [item.message for item in last.evaluation.findings if item.kind == KIND]
            if last.evaluation
            else []
        )
    return attempts


def _flagged(first: Attempt, repaired: Attempt) -> Attempt:
    """The repaired attempt, flagged with what it gave up of the kernel that the round began with."""
    if first.candidate is None or repaired.candidate is None or repaired.evaluation is None:
        return repaired
    flags = simplified(
        first.candidate.source, repaired.candidate.source, first.evaluation, repaired.evaluation
    )
    if not flags:
        return repaired
    found = repaired.evaluation
    return replace(repaired, evaluation=replace(found, findings=(*found.findings, *flags)))


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
    session: Session, effects: Effects, attempts: list[Attempt], step: Step
) -> tuple[list[Attempt], Comparison | None, list[Decision]]:
    """Compare and have the revision decided; a person's own edit is evaluated before it counts."""
    decisions: list[Decision] = []
    while True:
        final = _final(attempts)
        if final is None or final.candidate is None or final.evaluation is None:
            return attempts, None, decisions
        comparison = _comparison(session, final.evaluation)
        decision = await _decided(effects, effects.approver.review_revision(session, attempts, comparison))
        decisions.append(decision)
        if decision.action is Action.EDIT:
            attempts = [*attempts, await _persons_edit(session, effects, final.candidate, decision, step)]
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
    return await _evaluate(session, effects, attempt, step)


def _note(attempts: Sequence[Attempt], decisions: Sequence[Decision]) -> str:
    if any(attempt.candidate and attempt.evaluation for attempt in attempts):
        return ""
    if attempts:
        return attempts[-1].problem
    return f"stopped at the {decisions[-1].gate} gate" if decisions else ""
