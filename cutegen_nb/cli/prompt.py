"""`cutegen-nb prompt`: what an author would be asked, word for word, without asking anybody."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from difflib import get_close_matches

from cutegen_nb.analysis.problem_text import read_problem
from cutegen_nb.cli.commands import PASSED, Answer, read_source, settings_of
from cutegen_nb.cli.limits import add_prompts
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Relation, Round
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.asking import WITH_COUNTERS, Words, background_of, prompt_of_step
from cutegen_nb.loop.menu import offered
from cutegen_nb.loop.stages import Step, next_step
from cutegen_nb.prompting.memory import steering_text, tokens_of
from cutegen_nb.prompting.render import diagnose_prompt, repair_prompt
from cutegen_nb.wiring import Settings, library_of, make_evaluator, make_guide, open_store

SUMMARY = "print the request that an author would get, and send nothing"
_STAGES = {
    "generate": Stage.CORRECT,
    "optimise": Stage.STRUCTURE,
    "profile": Stage.PROFILE,
    "tune": Stage.TUNE,
}
_ON_A_FAILURE = ("diagnose", "repair")
_NO_DIAGNOSIS = "(the answer to the request for a diagnosis stands here)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """A candidate to repair."""

    candidate: Candidate
    evaluation: Evaluation
    strategy: Strategy | None = None
    diagnosis: str = _NO_DIAGNOSIS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options; where kernels run and are kept is added beside it."""
    parser.add_argument("problem", metavar="PROBLEM.py", nargs="?", help="the reference; or give --session")
    parser.add_argument(
        "--stage",
        choices=[*_STAGES, *_ON_A_FAILURE],
        help="which request (default: the one that would come next)",
    )
    parser.add_argument(
        "--kernel", metavar="KERNEL.py", help="a kernel to start from or to repair; it is run"
    )
    parser.add_argument("--session", metavar="NAME", help="a stored session, whose next round is asked for")
    parser.add_argument("--strategy", metavar="NAME", help="the strategy to ask for, of strategies.toml")
    add_prompts(parser)


async def prompt(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Render the request."""
    settings = settings_of(options)
    words = Words(library=library_of(settings), guide=make_guide(settings))
    session = await _session(options, settings, terminal)
    made, stage, because = _made(session, words, options)
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
        return Answer(status=PASSED, text=json.dumps(found, indent=2))
    return Answer(status=PASSED, text=f"{made.system.rstrip()}\n\n---\n\n{made.user.rstrip()}")


async def _session(options: argparse.Namespace, settings: Settings, terminal: Terminal) -> Session:
    """The stored session, or one made of the problem and, where one is given, its kernel."""
    if options.session:
        if options.kernel:
            message = "--kernel and --session are two places to start from: give one of the two"
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
    return await _fresh(read_problem(options.problem), options, settings, terminal)


async def _fresh(
    problem: Problem, options: argparse.Namespace, settings: Settings, terminal: Terminal
) -> Session:
    evaluator = make_evaluator(settings)
    try:
        session = Session(
            name=problem.name,
            problem=problem,
            facts=await evaluator.facts(problem, terminal.progress),
            device=await evaluator.device(),
            author="",
            budget=Budget(),
            created_at="",
        )
        if not options.kernel:
            return session
        candidate = Candidate(source=read_source(options.kernel), author="person")
        profile = _STAGES.get(options.stage or "") in WITH_COUNTERS
        found = await evaluator.evaluate(problem, candidate, terminal.progress, profile=profile)
    finally:
        await evaluator.close()
        terminal.clear()
    return replace(session, rounds=(_round_of(candidate, found),))


def _round_of(candidate: Candidate, found: Evaluation) -> Round:
    """The kernel as a session's first round: approved where it passed."""
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


def _made(session: Session, words: Words, options: argparse.Namespace) -> tuple[Prompt, str, str]:
    """The request, the stage it belongs to, and what brought the session there."""
    failure = _failure(session) if options.stage in _ON_A_FAILURE or _failed_at_once(session) else None
    wanted = options.stage or ("diagnose" if failure else None)
    if wanted in _ON_A_FAILURE:
        if failure is None:
            message = (
                f"--stage {wanted} needs a kernel that fails: give one with --kernel, or another --session"
            )
            raise UsageError(message)
        return _on_failure(session, words, failure, wanted), wanted, ""
    step = _step(session, words, wanted, options.strategy)
    return prompt_of_step(session, words, step, steering_text(session)), step.stage.value, step.because


def _on_failure(session: Session, words: Words, failure: _Failure, wanted: str) -> Prompt:
    background = background_of(session, words)
    if wanted == "diagnose":
        return diagnose_prompt(
            background,
            failure.candidate,
            failure.evaluation,
            strategy=failure.strategy,
            steering=steering_text(session),
        )
    return repair_prompt(
        background,
        failure.candidate,
        failure.evaluation,
        strategy=failure.strategy,
        diagnosis=failure.diagnosis,
    )


def _failed_at_once(session: Session) -> bool:
    """Whether all there is is one kernel, which fails: repairing it is what would come next."""
    return (
        len(session.rounds) == 1 and session.rounds[0].attempts[-1].purpose == "edit" and session.best is None
    )


def _failure(session: Session) -> _Failure | None:
    """The newest candidate that failed, with the diagnosis it got where it got one."""
    attempts = [attempt for item in session.rounds for attempt in item.attempts]
    for index in range(len(attempts) - 1, -1, -1):
        attempt = attempts[index]
        if attempt.candidate and attempt.evaluation and not attempt.evaluation.passed:
            after = attempts[index + 1] if index + 1 < len(attempts) else None
            reply = after.reply if after and after.purpose == "diagnose" else None
            return _Failure(
                candidate=attempt.candidate,
                evaluation=attempt.evaluation,
                strategy=attempt.prompt.strategy,
                diagnosis=reply.text if reply else _NO_DIAGNOSIS,
            )
    return None


def _step(session: Session, words: Words, wanted: str | None, strategy_name: str | None) -> Step:
    """The next step, or the one that was asked for."""
    menu = words.library.menu(session.facts.workload_class, session.facts.parts)
    step = next_step(session, menu)
    if strategy_name and (step.parent is None or wanted == "generate"):
        name = _named(words, strategy_name).name
        message = f"--strategy {name} starts from a kernel that passes: give one with --kernel"
        raise UsageError(message)
    if wanted == "generate":
        return Step(stage=Stage.CORRECT)
    stage = _STAGES[wanted] if wanted else step.stage
    if step.parent is None:
        if stage is not Stage.CORRECT:
            message = f"--stage {wanted} starts from a kernel that passes: give one with --kernel"
            raise UsageError(message)
        return step
    if stage is not step.stage:
        strategies = offered(session, menu, step.parent, stage)
        step = replace(step, stage=stage, because="", strategy=strategies[0] if strategies else None)
    if strategy_name:
        step = replace(step, strategy=_named(words, strategy_name))
    if step.strategy is None:
        message = f"nothing is left to try at stage {stage.value}: name a strategy with --strategy"
        raise UsageError(message)
    return step


def _named(words: Words, name: str) -> Strategy:
    found = next((item for item in words.library.strategies() if item.name == name), None)
    if found is None:
        names = [item.name for item in words.library.strategies()]
        near = get_close_matches(name, names, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        message = f"no strategy {name!r}: there is {', '.join(names)}{meant}"
        raise UsageError(message)
    return found
