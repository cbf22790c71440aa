"""What each command does. Each gives its exit status and the text for stdout."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from cutegen_nb.analysis.admission import admission_text
from cutegen_nb.analysis.problem_text import read_problem
from cutegen_nb.analysis.quantity import duration, scaled
from cutegen_nb.analysis.roofline import place
from cutegen_nb.analysis.spent import usage_words
from cutegen_nb.cli import doctor as doctoring
from cutegen_nb.cli.evaluated import evaluated_text
from cutegen_nb.cli.limits import budget_of, plan_of
from cutegen_nb.cli.output import (
    columns,
    evaluation_json,
    lineage_json,
    problem_json,
    session_json,
    sessions_json,
)
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import ConfigurationError, UsageError
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Schedule, Session
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.facts import workload_text
from cutegen_nb.prompting.memory import round_label
from cutegen_nb.report.fitting import paragraph
from cutegen_nb.report.lineage_text import lineage_text
from cutegen_nb.wiring import (
    Settings,
    make_effects,
    make_evaluator,
    open_store,
    repairs_of,
    settings_from_environment,
    uncounted_dollars,
)

PASSED, NONE_PASSED, FAULT = 0, 1, 2
_DEMO = Path(__file__).parent.with_name("demo_problem.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command came to."""

    status: int
    """Exit status."""
    text: str
    """For stdout."""


def settings_of(options: argparse.Namespace) -> Settings:
    """Settings from the options a command has, and from the environment."""
    given = vars(options)
    return settings_from_environment(
        author=given.get("author", "offline"),
        device=given.get("device", "auto"),
        policy=given.get("policy", "auto"),
        baselines=tuple(dict.fromkeys(given.get("baseline") or ())),
        folder=given.get("store"),
        model=given.get("model") or "",
        base_url=given.get("base_url") or "",
        profile=given.get("profile") or "",
        prompts=given.get("prompts"),
    )


async def demo(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Refine the shipped problem, as a session of its own each time."""
    problem = read_problem(str(_DEMO), name="demo")
    return await _refine(problem, options, terminal, fresh=True)


async def run(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Refine the problem of a file, going on from what is stored of it."""
    if options.name and not options.name.isidentifier():
        message = f"--name {options.name!r} is not a Python identifier: use letters, digits and _"
        raise UsageError(message)
    problem = read_problem(options.problem, name=options.name)
    return await _refine(problem, options, terminal, fresh=False)


async def _refine(
    problem: Problem, options: argparse.Namespace, terminal: Terminal, *, fresh: bool
) -> Answer:
    settings = settings_of(options)
    evaluator = make_evaluator(settings)
    try:
        effects = make_effects(settings, terminal, evaluator)
        with open_store(settings) as store:
            session = await open_session(
                problem,
                effects,
                store,
                budget_of(options, options.rounds),
                plan=plan_of(options),
                fresh=fresh,
            )
            _announce(session, options, settings, terminal)
            session = await run_session(
                session,
                effects,
                store,
                on_round=lambda _, item: terminal.say(_round_line(item)),
                repairs=repairs_of(settings),
            )
    finally:
        await evaluator.close()
        terminal.clear()
    path = _report_beside(session, settings.folder / f"{session.name}.html", terminal)
    status = PASSED if session.best else NONE_PASSED
    if options.json:
        return Answer(status=status, text=json.dumps(session_json(session, path), indent=2))
    return Answer(status=status, text=f"{_table(session)}\nreport: {path or 'none'}")


def _announce(session: Session, options: argparse.Namespace, settings: Settings, terminal: Terminal) -> None:
    admission = admission_text(session.facts.admission)
    if admission:
        terminal.say(admission)
    if options.dollars is not None and (why := uncounted_dollars(settings)):
        terminal.say(f"--dollars {options.dollars:g}: {why}")
    if options.plateau is not None and session.plan.schedule is Schedule.PAPER:
        terminal.say(
            f"--plateau {options.plateau}: the paper's schedule has no plateau; "
            "--schedule plateau beside it changes over"
        )
    if not session.rounds:
        return
    rounds = options.rounds
    text = f"{session.name} goes on after {len(session.rounds)} stored rounds"
    if len(session.rounds) >= rounds:
        text += f"; its {rounds} rounds are spent: --rounds gives more, --name starts another session"
    terminal.say(text)


def _round_line(item: Round) -> str:
    name = item.strategy.name if item.strategy else "first kernel"
    text = f"r{item.number}  {item.stage.value}: {name}: {round_label(item)}"
    if item.comparison:
        text += f", {item.comparison.relation.value}"
    if item.note:
        text += f" ({item.note})"
    spent = usage_words(item.usage)
    return f"{text}  [{item.seconds:.1f} s{f'; {spent}' if spent else ''}]"


def _table(session: Session) -> str:
    from cutegen_nb.report.text import table  # noqa: PLC0415 - only a readable result needs it

    return table(session)


def _report_beside(session: Session, path: Path, terminal: Terminal) -> str | None:
    """Write the report of a session that has just run; a GPU host without the drawing packages has none."""
    try:
        return _write_report(session, path)
    except ConfigurationError as error:
        terminal.say(f"no report was written: {error}")
        return None


def _write_report(session: Session, path: Path) -> str:
    try:
        from cutegen_nb.report.html import write_report  # noqa: PLC0415 - matplotlib takes a second to import
    except ImportError as error:
        message = f"{error.name} is not installed: pip install {error.name}, then `cutegen-nb report`"
        raise ConfigurationError(message) from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_report(session, str(path))
    except OSError as error:
        message = (
            f"cannot write the report {path} ({error.strerror}); the session is stored: "
            f"`cutegen-nb report {session.name} -o FILE.html` writes it elsewhere"
        )
        raise UsageError(message) from error
    return str(path)


async def problem(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Say what is known of a problem before any kernel is written, and which wrong answers are refused."""
    given = read_problem(options.problem)
    evaluator = make_evaluator(settings_of(options))
    try:
        facts = await evaluator.facts(given, terminal.progress)
        device = await evaluator.device()
    finally:
        await evaluator.close()
        terminal.clear()
    if options.json:
        return Answer(status=PASSED, text=json.dumps(problem_json(given.name, facts), indent=2))
    refused = len(facts.admission.refused) if facts.admission else 0
    lines = [
        *paragraph(_known(given.name, facts, device)),
        workload_text(facts, device).rstrip(),
        f"{refused} wrong answers were tried and refused." if refused else "",
        admission_text(facts.admission),
    ]
    return Answer(status=PASSED, text="\n".join(line for line in lines if line))


def _known(name: str, facts: ProblemFacts, device: Device) -> str:
    """Class, work and bound at full size, in a sentence."""
    roof = place(facts, device)
    text = (
        f"{name}: {facts.workload_class.value}, {facts.dtype}, {scaled(facts.full.flops, 'FLOP')}, "
        f"at least {scaled(facts.full.least_bytes, 'B')} to move"
    )
    if roof.floor_ms:
        floor = duration(roof.floor_ms / 1e3)
        text += f"; on {device.name} {roof.bound.value} allows no kernel under {floor}"
    return f"{text}."


async def evaluate(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Judge one candidate file, or those of a batch."""
    if options.batch:
        if options.problem or not options.output:
            message = "--batch JOBS.jsonl goes with -o RESULTS.jsonl and no file of a problem"
            raise UsageError(message)
        from cutegen_nb.cli.batches import evaluate_batch  # noqa: PLC0415 - it imports this module

        return await evaluate_batch(options, terminal)
    if not options.candidate:
        message = "evaluate needs PROBLEM.py and CANDIDATE.py, or --batch JOBS.jsonl"
        raise UsageError(message)
    if options.output:
        message = (
            f"-o {options.output} is for --batch; one kernel's result is printed: --json > {options.output}"
        )
        raise UsageError(message)
    problem = read_problem(options.problem)
    candidate = Candidate(source=read_source(options.candidate), author="person")
    evaluator = make_evaluator(settings_of(options))
    try:
        facts = await evaluator.facts(problem, terminal.progress)
        found = await evaluator.evaluate(problem, candidate, terminal.progress, Tier(options.tier))
    finally:
        await evaluator.close()
        terminal.clear()
    status = PASSED if found.passed else NONE_PASSED
    if options.json:
        return Answer(status=status, text=json.dumps(evaluation_json(found, facts.admission), indent=2))
    text = evaluated_text(found, candidate, facts.admission)
    if found.passed and found.profile:
        where = f"`cutegen-nb profile {shlex.quote(options.problem)} {shlex.quote(options.candidate)}`"
        text += f"\n\nWhere it spends its work, line by line: {where}"
    return Answer(status=status, text=text)


def read_source(path: str) -> str:
    """The text of a kernel's file. Raises UsageError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read the kernel {path}: {error.strerror}; give the path of a file with ModelNew"
        raise UsageError(message) from error
    except UnicodeDecodeError as error:
        message = (
            f"the kernel {path} is not text in UTF-8: byte {error.start} is {error.object[error.start]:#x}; "
            "save it as UTF-8"
        )
        raise UsageError(message) from error


async def sessions(options: argparse.Namespace, terminal: Terminal) -> Answer:  # noqa: ARG001 - one shape for all
    """List what is stored; of one session, what was made from what."""
    with open_store(settings_of(options), writable=False) as store:
        if options.session:
            return _lineage(store.load(options.session), json_wanted=options.json)
        found = sessions_json([store.load(name) for name in store.names()])
    if options.json:
        return Answer(status=PASSED, text=json.dumps(found, indent=2))
    header = ("session", "class", "device", "author", "rounds", "best", "created", "stopped")
    rows = [
        (
            item["session"],
            item["class"],
            item["device"],
            item["author"],
            str(item["rounds"]),
            item["best"] or "-",
            item["created_at"],
            item["stopped"],
        )
        for item in found
    ]
    return Answer(status=PASSED, text=columns(header, rows) if rows else "no sessions yet")


def _lineage(session: Session, *, json_wanted: bool) -> Answer:
    if json_wanted:
        return Answer(status=PASSED, text=json.dumps(lineage_json(session), indent=2))
    return Answer(status=PASSED, text=lineage_text(session))


async def report(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Write a stored session as one HTML file."""
    with open_store(settings_of(options), writable=False) as store:
        session = store.load(options.session)
    if Path(options.output).suffix != ".html":
        message = f"-o {options.output!r} does not end in .html, the one form a report has"
        raise UsageError(message)
    terminal.progress("drawing the report")
    path = _write_report(session, Path(options.output))
    terminal.clear()
    return Answer(
        status=PASSED,
        text=json.dumps({"session": session.name, "report": path}) if options.json else f"report: {path}",
    )


async def doctor(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Say what this machine offers."""
    terminal.progress("looking at this machine")
    lines = await doctoring.examine(settings_of(options))
    terminal.clear()
    status = PASSED if all(line.fine for line in lines) else NONE_PASSED
    if options.json:
        return Answer(status=status, text=json.dumps(doctoring.lines_json(lines), indent=2))
    rows = [("ok" if line.fine else "!!", line.item, line.value) for line in lines]
    return Answer(status=status, text=columns(("", "what", "found"), rows))
