"""Handlers of `demo`, `run`, `resume`, `problem`, `evaluate`, `sessions`, `report` and `doctor`."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from cutegen_nb.analysis.estimate.targets import with_figures
from cutegen_nb.analysis.figures.quantity import duration, scaled
from cutegen_nb.analysis.figures.spending import usage_words
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.history.spending import rounds_spent
from cutegen_nb.analysis.problem.admission import admission_text
from cutegen_nb.analysis.problem.problem_text import read_problem
from cutegen_nb.app import doctor as doctoring
from cutegen_nb.app.budgets import budget_of, plan_of
from cutegen_nb.app.output import (
    columns,
    damaged_json,
    evaluation_json,
    lineage_json,
    problem_json,
    session_json,
    sessions_json,
)
from cutegen_nb.app.replay import epoch_words
from cutegen_nb.app.resuming import resumed_problem, resumed_settings
from cutegen_nb.app.sessions_list import sessions_text, write_sessions
from cutegen_nb.cli.answer import NONE_PASSED, PASSED, CommandResult
from cutegen_nb.cli.batches import evaluate_batch
from cutegen_nb.cli.evaluated import evaluated_text, everything_text
from cutegen_nb.cli.settings import read_source, settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import ConfigurationError, UsageError
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Budget, Schedule, Session
from cutegen_nb.loop.population.run import refine
from cutegen_nb.loop.session import Replan, open_session, other_name
from cutegen_nb.prompting.facts import workload_text
from cutegen_nb.prompting.memory import round_label
from cutegen_nb.report.terminal.fitting import paragraph
from cutegen_nb.report.terminal.lineage import lineage_text
from cutegen_nb.report.terminal.session import ending_lines, rounds_lines, shown_round
from cutegen_nb.report.terminal.verdict import VerdictSetting
from cutegen_nb.wiring import (
    Settings,
    make_effects,
    make_evaluator,
    max_repairs,
    no_price_reason,
    open_store,
    slots_at_once,
)

_DEMO = Path(__file__).parent.with_name("demo_problem.py")
"""File of the problem that ``demo`` refines."""


async def demo(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Refine the shipped problem in a new session."""
    problem = read_problem(str(_DEMO), name="demo")
    return await _refine(_asked_for(problem, options), options, terminal, fresh=True)


async def run(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Refine the problem of a file; a stored session of the same problem is resumed."""
    if options.name and not options.name.isidentifier():
        message = f"--name {options.name!r} is not a Python identifier: use letters, digits and _"
        raise UsageError(message)
    problem = read_problem(options.problem, name=options.name, library=options.library)
    return await _refine(_asked_for(problem, options), options, terminal)


async def resume(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Go on with a stored session, by its own author, on its own kind of device and within its own limits."""
    with open_store(settings_of(options), writable=False) as store:
        names = store.names()
        if not names:
            message = f"no session is stored in {store.path}: `cutegen-nb run PROBLEM.py` makes one"
            raise UsageError(message)
        stored = store.load(options.session or names[-1])
    settings = resumed_settings(stored, options, options.store)
    work = _Work(
        problem=resumed_problem(stored),
        settings=replace(settings, policy=options.policy),
        budget=replace(stored.budget, rounds=options.rounds or stored.budget.rounds),
    )
    return await _refine(work, options, terminal)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Problem to refine, and how."""

    problem: Problem
    settings: Settings
    budget: Budget
    plan: Replan | None = None
    """Function that changes the plan of stages; None for no change."""


def _asked_for(problem: Problem, options: argparse.Namespace) -> _Work:
    budget = budget_of(options, options.rounds)
    return _Work(problem=problem, settings=settings_of(options), budget=budget, plan=plan_of(options))


async def _refine(
    work: _Work, options: argparse.Namespace, terminal: Terminal, *, fresh: bool = False
) -> CommandResult:
    settings = work.settings
    evaluator = make_evaluator(settings, terminal.say)
    try:
        effects = make_effects(settings, terminal, evaluator)
        with open_store(settings) as store:
            session = await open_session(
                work.problem, effects, store, work.budget, plan=work.plan, fresh=fresh
            )
            if work.plan is not None:
                _say_ignored(session, options, settings, terminal)
            renamed = "" if fresh else other_name(work.problem.name, session.name)
            if renamed:
                terminal.say(renamed)
            _announce(session, terminal)
            session = await refine(
                session,
                effects,
                store,
                on_round=lambda _, item: terminal.say(round_line(item)),
                on_epoch=lambda whole, _: terminal.say(epoch_words(whole)),
                repairs=max_repairs(settings),
                workers=settings.workers,
                slots=slots_at_once(settings, session.plan.population),
            )
    finally:
        await evaluator.close()
        terminal.clear()
    path = report_beside(session, settings.folder / f"{session.name}.html", terminal)
    status = PASSED if session.best else NONE_PASSED
    if options.json:
        return CommandResult(status=status, text=json.dumps(session_json(session, path), indent=2))
    return CommandResult(status=status, text=_ending(session, path, verbose=options.verbose))


def _say_ignored(
    session: Session, options: argparse.Namespace, settings: Settings, terminal: Terminal
) -> None:
    """Tell which options change nothing in this session."""
    if options.dollars is not None and (why := no_price_reason(settings)):
        terminal.say(f"--dollars {options.dollars:g}: {why}")
    if options.plateau is not None and session.plan.schedule is Schedule.PAPER:
        terminal.say(
            f"--plateau {options.plateau}: the paper's schedule has no plateau; "
            "--schedule plateau beside it changes over"
        )
    if options.epochs is not None and not options.population:
        terminal.say(f"--epochs {options.epochs}: {_epochs_ignored(session)}")
    if settings.workers > 1 and session.plan.population == 1:
        terminal.say(
            f"--workers {settings.workers}: a chain evaluates one kernel after the other; --population N "
            "evaluates several at once"
        )


def _announce(session: Session, terminal: Terminal) -> None:
    _say_warnings(session.facts, session.device, terminal)
    admission = admission_text(session.facts.admission)
    if admission:
        terminal.say(admission)
    if not session.rounds:
        return
    rounds = session.budget.rounds
    count = len(session.rounds)
    text = f"{session.name} goes on after {count} stored round{'' if count == 1 else 's'}"
    if rounds_spent(session) >= rounds:
        text += f"; its {rounds} rounds are spent: --rounds gives more, --name starts another session"
    terminal.say(text)


def _say_warnings(facts: ProblemFacts, device: Device, terminal: Terminal) -> None:
    for warning in facts.warnings_on(device.kind):
        terminal.say(f"Note: {warning}.")


def _epochs_ignored(session: Session) -> str:
    """Return the reason why ``--epochs`` without ``--population`` changes nothing, with the next step."""
    if session.plan.population == 1:
        return "a chain has none; --population N evolves several kernels in epochs"
    kept = f"{session.name} keeps its {session.budget.epochs}"
    return f"{kept}; --population {session.plan.population} beside it changes them"


def round_line(item: Round) -> str:
    """Format a finished round in one line: strategy, verdict, relation to the best, time and cost."""
    became = item.evaluation.verdict_words if item.evaluation else round_label(item)
    where = f"epoch {item.slot.epoch}, {item.slot.move.value}" if item.slot else item.stage.value
    text = f"r{item.number}  {where}: {item.title}: {became}"
    if item.comparison:
        text += f", {item.comparison.words}"
    if item.note:
        text += f" ({item.note})"
    elif item.ended:
        text += f"; not tried: {'; '.join(ended.text for ended in item.ended)}"
    spent = usage_words(item.usage)
    text = f"{text}  [{item.seconds:.1f} s{f'; {spent}' if spent else ''}]"
    return f"{text}\n    {item.chosen_because}" if item.chosen_because else text


def _ending(session: Session, report: str | None, *, verbose: bool) -> str:
    shown = shown_round(session)
    lines = [*rounds_lines(session), "", *ending_lines(session, report)]
    if verbose and shown and shown.evaluation and shown.candidate:
        lines += ["", everything_text(shown.evaluation, shown.candidate, session.facts.admission)]
    return "\n".join(lines)


def report_beside(session: Session, path: Path, terminal: Terminal) -> str | None:
    """Write the report of a session that has just run; None if the drawing packages are not installed."""
    try:
        return _write_report(session, path)
    except ConfigurationError as error:
        terminal.say(f"no report was written: {error}")
        return None


def _write_report(session: Session, path: Path, whole: str = "") -> str:
    try:
        from cutegen_nb.report.html.session_page import write_report  # noqa: PLC0415 - matplotlib takes a second to import
    except ImportError as error:
        message = f"{error.name} is not installed: pip install {error.name}, then `cutegen-nb report`"
        raise ConfigurationError(message) from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_report(session, str(path), whole)
    except OSError as error:
        message = (
            f"cannot write the report {path} ({error.strerror}); the session is stored: "
            f"`cutegen-nb report {session.name} -o FILE.html` writes it elsewhere"
        )
        raise UsageError(message) from error
    return str(path)


async def problem(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Report the facts of a problem before any kernel exists, and which wrong answers are refused."""
    given = read_problem(options.problem)
    settings = settings_of(options)
    evaluator = make_evaluator(settings)
    try:
        facts = await evaluator.facts(given, terminal.progress)
        device = with_figures(await evaluator.device(), settings.estimate_target)
    finally:
        await evaluator.close()
        terminal.clear()
    if options.json:
        return CommandResult(status=PASSED, text=json.dumps(problem_json(given.name, facts), indent=2))
    refused = len(facts.admission.refused) if facts.admission else 0
    lines = [
        *paragraph(_facts_sentence(given.name, facts, device)),
        workload_text(facts, device).rstrip(),
        f"{refused} wrong answers were tried and refused." if refused else "",
        admission_text(facts.admission),
    ]
    return CommandResult(status=PASSED, text="\n".join(line for line in lines if line))


def _facts_sentence(name: str, facts: ProblemFacts, device: Device) -> str:
    """Return class, FLOPs, bytes and the roofline bound at full size, in a sentence."""
    roof = place(facts, device)
    text = (
        f"{name}: {facts.workload_class.value}, {facts.dtype}, {scaled(facts.full.flops, 'FLOP')}, "
        f"at least {scaled(facts.full.least_bytes, 'B')} to move"
    )
    if roof.floor_ms:
        floor = duration(roof.floor_ms / 1e3)
        text += f"; on {device.gpu_name} {roof.bound.value} allows no kernel under {floor}"
    return f"{text}."


async def evaluate(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Evaluate one candidate file, or the jobs of ``--batch``."""
    if options.batch:
        if options.problem or not options.output:
            message = "--batch JOBS.jsonl goes with -o RESULTS.jsonl and no file of a problem"
            raise UsageError(message)
        if options.library:
            message = "--library is for one kernel: each job of --batch says what its session allows"
            raise UsageError(message)
        return await evaluate_batch(options, terminal)
    if not options.candidate:
        message = "evaluate needs PROBLEM.py and CANDIDATE.py, or --batch JOBS.jsonl"
        raise UsageError(message)
    if options.output:
        message = (
            f"-o {options.output} is for --batch; one kernel's result is printed: --json > {options.output}"
        )
        raise UsageError(message)
    problem = read_problem(options.problem, library=options.library)
    candidate = Candidate(source=read_source(options.candidate), author="person")
    evaluator = make_evaluator(settings_of(options), terminal.say)
    try:
        facts = await evaluator.facts(problem, terminal.progress)
        device = await evaluator.device()
        _say_warnings(facts, device, terminal)
        found = await evaluator.evaluate(problem, candidate, terminal.progress, Tier(options.tier))
    finally:
        await evaluator.close()
        terminal.clear()
    status = PASSED if found.passed else NONE_PASSED
    if options.json:
        return CommandResult(
            status=status, text=json.dumps(evaluation_json(found, facts.admission), indent=2)
        )
    where = f"`cutegen-nb profile {shlex.quote(options.problem)} {shlex.quote(options.candidate)}`"
    text = evaluated_text(
        found,
        candidate,
        VerdictSetting(source=candidate.source, facts=facts, device=device),
        verbose=options.verbose,
        passed_next=f"{where} says what each line costs{_tier_c_hint(found.tier)}",
    )
    return CommandResult(status=status, text=text)


def _tier_c_hint(tier: Tier) -> str:
    return "" if tier is Tier.C else "; `--tier C` looks as closely as an export does"


async def sessions(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """List the stored sessions, or the lineage of one session's revisions."""
    with open_store(settings_of(options), writable=False) as store:
        if options.html:
            path = write_sessions(store, options.html, options.session)
            told = json.dumps({"page": path}) if options.json else f"sessions: {path}"
            return CommandResult(status=PASSED, text=told)
        if options.session:
            return _lineage(store.load(options.session), json_wanted=options.json)
        stored, damaged = store.summaries()
    if options.json:
        found = sessions_json(stored) + damaged_json(damaged)
        return CommandResult(status=PASSED, text=json.dumps(found, indent=2))
    return CommandResult(status=PASSED, text=sessions_text(stored, damaged))


def _lineage(session: Session, *, json_wanted: bool) -> CommandResult:
    if json_wanted:
        return CommandResult(status=PASSED, text=json.dumps(lineage_json(session), indent=2))
    return CommandResult(status=PASSED, text=lineage_text(session))


async def report(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Write a stored session as one HTML file."""
    settings = settings_of(options)
    with open_store(settings, writable=False) as store:
        session = store.load(options.session)
    target = Path(options.output) if options.output else settings.folder / f"{session.name}.html"
    if target.suffix != ".html":
        message = f"-o {options.output!r} does not end in .html, the one form a report has"
        raise UsageError(message)
    terminal.progress("drawing the report")
    path = _write_report(session, target, options.whole)
    terminal.clear()
    return CommandResult(
        status=PASSED,
        text=json.dumps({"session": session.name, "report": path}) if options.json else f"report: {path}",
    )


async def doctor(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Report the state of this machine; status NONE_PASSED if an item needs repair."""
    terminal.progress("looking at this machine")
    lines = await doctoring.examine(settings_of(options))
    terminal.clear()
    status = PASSED if all(line.fine for line in lines) else NONE_PASSED
    if options.json:
        return CommandResult(status=status, text=json.dumps(doctoring.lines_json(lines), indent=2))
    rows = [(line.mark, line.item, line.value) for line in lines]
    return CommandResult(status=status, text=columns(("", "what", "found"), rows))
