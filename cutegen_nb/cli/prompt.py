"""`cutegen-nb prompt`: the next request to an author, in full, without sending it."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from difflib import get_close_matches

from cutegen_nb.analysis.estimate.targets import EstimateTarget, with_figures
from cutegen_nb.analysis.problem.problem_text import read_problem
from cutegen_nb.app.arguments import FAILURE_REQUESTS, REQUESTS
from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.settings import read_source, settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.search.knowledge import no_knowledge
from cutegen_nb.core.session import WITH_COUNTERS, Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.asking import PromptSources, background_of, prompt_of_step
from cutegen_nb.loop.knowledge_order import chosen, earlier_records
from cutegen_nb.loop.menu import offered
from cutegen_nb.loop.stages import Step, next_step
from cutegen_nb.loop.steering import steered
from cutegen_nb.prompting.memory import steering_text, tokens_of
from cutegen_nb.prompting.render import diagnose_prompt, repair_prompt
from cutegen_nb.report.kernel_file import kernel_source
from cutegen_nb.wiring import Settings, library_of, make_evaluator, make_guide, make_history, open_store

_NO_DIAGNOSIS = "(the answer to the request for a diagnosis stands here)"
"""Placeholder in a repair request for a failure that has no diagnosis yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """Candidate to repair, with its evaluation and its diagnosis."""

    candidate: Candidate
    evaluation: Evaluation
    strategy: Strategy | None = None
    diagnosis: str = _NO_DIAGNOSIS
    steering: str = ""


async def prompt(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Print the request that an author would get next, or the one that ``--stage`` names."""
    settings = settings_of(options)
    history = make_history(settings, terminal.say)
    words = PromptSources(
        library=library_of(settings),
        guide=make_guide(settings),
        knowledge=history.recall if history else no_knowledge,
        target=settings.estimate_target,
    )
    session = await _session(options, settings, terminal, words.target)
    made, stage, because = _request_and_stage(session, words, options)
    if options.json:
        found = {
            "session": session.name,
            "stage": stage,
            "because": because,
            "strategy": made.strategy.name if made.strategy else None,
            "digest": made.digest,
            "templates": made.templates or None,
            "tokens_estimate": tokens_of(made.system) + tokens_of(made.user),
            "system": made.system,
            "user": made.user,
        }
        return CommandResult(status=PASSED, text=json.dumps(found, indent=2))
    return CommandResult(status=PASSED, text=f"{made.system.rstrip()}\n\n---\n\n{made.user.rstrip()}")


async def _session(
    options: argparse.Namespace, settings: Settings, terminal: Terminal, target: EstimateTarget | None
) -> Session:
    """Load the stored session, or make one from the problem and the kernel if one is given."""
    if options.session:
        if options.kernel:
            message = "--kernel and --session are two places to start from: give one of the two"
            raise UsageError(message)
        if options.library:
            message = "--library is a part of a stored session already: give it with PROBLEM.py alone"
            raise UsageError(message)
        with open_store(settings, writable=False) as store:
            stored = store.load(options.session)
        if options.problem and read_problem(options.problem).digest != stored.problem.digest:
            message = (
                f"session {options.session} is of another problem than {options.problem}: give one of the two"
            )
            raise UsageError(message)
        return stored
    if not options.problem:
        message = "no problem: give PROBLEM.py, or --session NAME for a stored one"
        raise UsageError(message)
    problem = read_problem(options.problem, library=options.library)
    return await _fresh(problem, options, settings, terminal, target)


async def _fresh(
    problem: Problem,
    options: argparse.Namespace,
    settings: Settings,
    terminal: Terminal,
    target: EstimateTarget | None,
) -> Session:
    evaluator = make_evaluator(settings)
    try:
        session = Session(
            name=problem.name,
            problem=problem,
            facts=await evaluator.facts(problem, terminal.progress),
            device=with_figures(await evaluator.device(), target),
            author="",
            budget=Budget(),
            created_at="",
        )
        if not options.kernel:
            return session
        source = kernel_source(read_source(options.kernel), options.kernel)
        candidate = Candidate(source=source, author="person")
        profile = REQUESTS.get(options.stage or "") in WITH_COUNTERS
        found = await evaluator.evaluate(problem, candidate, terminal.progress, profile=profile)
    finally:
        await evaluator.close()
        terminal.clear()
    return replace(session, rounds=(_round_of(candidate, found),))


def _round_of(candidate: Candidate, found: Evaluation) -> Round:
    """Return the kernel as round 0 of a session, approved if it passed and rejected if not."""
    asked = Prompt(system="", user="", digest="", purpose="edit")
    attempt = Attempt(purpose="edit", prompt=asked, reply=None, candidate=candidate, evaluation=found)
    action = Action.APPROVE if found.passed else Action.REJECT
    return Round(
        number=0,
        stage=Stage.CORRECT,
        strategy=None,
        attempts=(attempt,),
        comparison=Comparison(relation=Relation.FIRST, reason="It was given.") if found.passed else None,
        decisions=(Decision(gate="revision", action=action, by="policy:auto"),),
        started_at="",
        seconds=0.0,
    )


def _request_and_stage(
    session: Session, words: PromptSources, options: argparse.Namespace
) -> tuple[Prompt, str, str]:
    """Return the request, its stage and the reason for that stage."""
    failure = _failure(session) if options.stage in FAILURE_REQUESTS or _failed_at_once(session) else None
    wanted = options.stage or ("diagnose" if failure else None)
    if wanted in FAILURE_REQUESTS:
        if failure is None:
            message = (
                f"--stage {wanted} needs a kernel that fails: give one with --kernel, or another --session"
            )
            raise UsageError(message)
        return _on_failure(session, words, failure, wanted), wanted, ""
    step, steering = _step(session, words, wanted, options.strategy), steering_text(session)
    if not options.strategy:
        step = steered(step, steering, words.library.menu(session.facts.workload_class, session.facts.parts))
    return prompt_of_step(session, words, step, steering), step.stage.value, step.because


def _on_failure(session: Session, words: PromptSources, failure: _Failure, wanted: str) -> Prompt:
    background = replace(background_of(session, words), steering=failure.steering)
    if wanted == "diagnose":
        return diagnose_prompt(
            background,
            failure.candidate,
            failure.evaluation,
            strategy=failure.strategy,
        )
    return repair_prompt(
        background,
        failure.candidate,
        failure.evaluation,
        strategy=failure.strategy,
        diagnosis=failure.diagnosis,
    )


def _failed_at_once(session: Session) -> bool:
    """True if the only round is a given kernel that failed; the next request then repairs it."""
    return (
        len(session.rounds) == 1 and session.rounds[0].attempts[-1].purpose == "edit" and session.best is None
    )


def _failure(session: Session) -> _Failure | None:
    """Return the newest candidate that failed, with its diagnosis if one was made; None if none failed."""
    attempts = [attempt for item in session.rounds for attempt in item.attempts]
    for index in range(len(attempts) - 1, -1, -1):
        attempt = attempts[index]
        if attempt.candidate and attempt.evaluation and not attempt.evaluation.passed:
            after = attempts[index + 1] if index + 1 < len(attempts) else None
            words = after if after and after.purpose == "diagnose" and after.candidate is None else None
            return _Failure(
                candidate=attempt.candidate,
                evaluation=attempt.evaluation,
                strategy=attempt.prompt.strategy,
                diagnosis=words.reply.text if words and words.reply else _NO_DIAGNOSIS,
                steering=attempt.prompt.steering,
            )
    return None


def _step(session: Session, words: PromptSources, wanted: str | None, strategy_name: str | None) -> Step:
    """Return the next step of the session, or the one that ``--stage`` and ``--strategy`` ask for."""
    menu = words.library.menu(session.facts.workload_class, session.facts.parts)
    records = earlier_records(session, words.knowledge)
    step = next_step(session, menu, records, words.target)
    if strategy_name and (step.parent is None or wanted == "generate"):
        name = _named(words, strategy_name).name
        message = f"--strategy {name} starts from a kernel that passes: give one with --kernel"
        raise UsageError(message)
    if wanted == "generate":
        return Step(stage=Stage.CORRECT)
    stage = REQUESTS[wanted] if wanted else step.stage
    if step.parent is None:
        if stage is not Stage.CORRECT:
            message = f"--stage {wanted} starts from a kernel that passes: give one with --kernel"
            raise UsageError(message)
        return step
    if stage is not step.stage:
        choice = chosen(
            offered(session, menu, step.parent, stage, words.target), records, session, step.parent
        )
        step = replace(step, stage=stage, because="", strategy=choice.strategy if choice else None)
    if strategy_name:
        step = replace(step, strategy=_named(words, strategy_name))
    if step.strategy is None:
        message = f"nothing is left to try at stage {stage.value}: name a strategy with --strategy"
        raise UsageError(message)
    return step


def _named(words: PromptSources, name: str) -> Strategy:
    found = next((item for item in words.library.strategies() if item.name == name), None)
    if found is None:
        names = [item.name for item in words.library.strategies()]
        near = get_close_matches(name, names, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        message = f"no strategy {name!r}: there is {', '.join(names)}{meant}"
        raise UsageError(message)
    return found
