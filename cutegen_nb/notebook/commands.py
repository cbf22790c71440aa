"""What each line magic does: the twin of a button, or a look at a session. Each gives what the cell shows."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cutegen_nb.analysis.problem_text import name_from_path, problem_from_string, read_problem
from cutegen_nb.analysis.summary import outcome, revision
from cutegen_nb.cli.doctor import examine
from cutegen_nb.cli.exporting import SUFFIXES
from cutegen_nb.cli.limits import budget_of, plan_of
from cutegen_nb.cli.output import columns
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.round import Action, Round
from cutegen_nb.core.session import Session
from cutegen_nb.notebook import arguments, carrying
from cutegen_nb.notebook.approver import Answer
from cutegen_nb.notebook.arguments import DEFAULT_ROUNDS
from cutegen_nb.notebook.desk import Desk, Wish, absolute
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import Shown
from cutegen_nb.notebook.merging import merge_answer
from cutegen_nb.report import diff_view
from cutegen_nb.report.lineage_text import lineage_text
from cutegen_nb.report.markup import visible
from cutegen_nb.wiring import AUTHORS, Settings, open_store, settings_from_environment

Options = argparse.Namespace
Command = Callable[[Desk, Options], object]
"""Gives the cell's result: a text, an object to display, or None."""

DEFAULT_NAME = "session"


def start(desk: Desk, options: Options, cell: str) -> None:
    """``%%cutegen``: refine the problem of the cell, or of a file."""
    problem = read_problem(options.problem, name=options.name) if options.problem else _of_cell(cell, options)
    desk.start(_wish(options, problem))


def _of_cell(cell: str, options: Options) -> Problem:
    if not cell.strip():
        raise NotebookUsageError(
            "the cell is empty: write the problem below %%cutegen, "
            "a class Model or a function with get_inputs"
        )
    problem = problem_from_string(cell, name=options.name or DEFAULT_NAME)
    if options.name or problem.form is not ProblemForm.FUNCTION:
        return problem
    return problem_from_string(cell, name=name_from_path(problem.function))


def _wish(options: Options, problem: Problem) -> Wish:
    settings = settings_from_environment(
        author=options.author,
        device=options.device,
        baselines=tuple(dict.fromkeys(options.baseline or ())),
        folder=absolute(options.store),
        model=options.model or "",
        base_url=options.base_url or "",
        profile=options.profile or "",
        prompts=absolute(options.prompts) if options.prompts else None,
    )
    return Wish(
        problem=problem,
        settings=settings,
        policy=options.policy,
        rounds=options.rounds,
        budget=budget_of(options, options.rounds or DEFAULT_ROUNDS),
        plan=plan_of(options),
        strict=options.strict,
    )


def run(desk: Desk, options: Options) -> None:
    """Refine the problem of a file."""
    desk.start(_wish(options, read_problem(options.problem, name=options.name)))


def resume(desk: Desk, options: Options) -> None:
    """Take up a stored session; one that is at work here is shown again."""
    if options.session in desk.names() and not desk.find(options.session).ended.is_set():
        return panel(desk, options)
    stored = desk.stored(options.session or "", options.store)
    author, _, model = stored.author.partition(":")
    if author == "replay":
        raise NotebookUsageError(
            f"{stored.name} is a replay and nothing more of it is recorded: "
            f"`%cutegen replay {model}` shows it again, `%cutegen resume` takes up a session that ran"
        )
    settings = settings_from_environment(
        author=author if author in AUTHORS else "openai",
        profile="" if author in AUTHORS else author,
        device="simulator" if stored.device.kind is DeviceKind.SIMULATOR else "cuda",
        folder=absolute(options.store),
        model=model,
    )
    problem = _renamed(stored)
    desk.start(Wish(problem=problem, settings=settings, policy=options.policy, rounds=options.rounds))
    return None


def _renamed(stored: Session) -> Problem:
    """The stored problem under the session's own name (``gelu_2`` is not the problem's)."""
    return replace(stored.problem, name=stored.name)


def status(desk: Desk, options: Options) -> str:
    """What a session is doing or waits for."""
    if not desk.names() and not options.session:
        stored = desk.stored_names(options.store)
        known = f"; stored: {', '.join(stored)} (`%cutegen resume NAME`)" if stored else ""
        return f"No session in this kernel: start one with %%cutegen{known}."
    if options.session and options.session not in desk.names():
        session = desk.stored(options.session, options.store)
        return f"{session.name}, stored: {outcome(session)} {session.stopped or 'It may go on.'}"
    running = desk.find(options.session)
    live, gate = running.live, running.gate
    rounds = running.session.rounds if running.session else ()
    state = (
        f"ended: {live.ended}"
        if live.ended
        else gate.words
        if gate
        else f"round {len(rounds)}, {live.doing or 'between two steps'}"
    )
    said = f"{running.name}: {state}"
    return f"{said}\n{outcome(running.session)}" if running.session and rounds else said


def _decide(action: Action) -> Command:
    def deciding(desk: Desk, options: Options) -> str:
        if not options.name and options.words in desk.names():
            raise NotebookUsageError(
                f"nothing was done: {options.words} is a session, and "
                f"`%cutegen {action.value} --name {options.words}` would mean it"
            )
        return desk.find(options.name).decide(Answer(action=action, reason=options.words))

    return deciding


def branch(desk: Desk, options: Options) -> str:
    """Go on from another revision."""
    return desk.find(options.name).decide(Answer(action=Action.BRANCH, edited=options.revision))


def merge(desk: Desk, options: Options) -> str:
    """Put the changes of two revisions in the place of the revision that waits."""
    running = desk.find(options.name)
    return running.decide(merge_answer(running.gate, options.revisions, running.name))


def edit(desk: Desk, options: Options) -> str | None:
    """Put the text that is decided on into a new cell, or take an edited one from a file."""
    running = desk.find(options.name)
    if options.file:
        text = _file_text(options.file)
        return running.decide(Answer(action=Action.EDIT, edited=text))
    gate = running.gate
    if gate is None:
        raise NotebookUsageError("there is nothing to edit: no decision is waited for now")
    named = f" --name {options.name}" if options.name else ""
    desk.shell.set_next_input(f"%%cutegen edit{named}\n{gate.text}")
    return None


def _file_text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotebookUsageError(f"{path} cannot be read ({error}): give a text file") from error


def decide_with_cell(desk: Desk, command: str, rest: str, cell: str) -> str:
    """``%%cutegen edit`` and ``%%cutegen steer``: the cell is the text of the decision."""
    options = arguments.parse_command("edit" if command == "edit" else "steer", rest)
    running = desk.find(options.name)
    if command == "reply":
        return running.take_reply(cell)
    if command == "edit":
        return running.decide(Answer(action=Action.EDIT, edited=cell))
    return running.decide(Answer(action=Action(command), reason=f"{options.words}\n{cell}"))


def wait(desk: Desk, options: Options) -> str:
    """Hold the cell until the session has ended or needs somebody."""
    running = desk.find(options.name)
    desk.wait(running, options.timeout)
    return status(desk, Options(session=running.order.problem.name, store=None))


def prompt(desk: Desk, options: Options) -> Shown:
    """The prompt that waits for a person, to be copied."""
    running = desk.find(options.name)
    if running.asked is None:
        raise NotebookUsageError(f"{running.name} waits for nobody's answer to a prompt now")
    return carrying.shown_prompt(running.asked)


def replay(desk: Desk, options: Options) -> str:
    """A recorded session again."""
    session, text = carrying.replay_here(desk.engine, options.session, absolute(options.store))
    return f"{text}\n`%cutegen report {session.name}` shows it"


def rounds(desk: Desk, options: Options) -> object:
    """The rounds as a DataFrame."""
    handle = desk.stored_handle(options.session, options.store)
    return handle.rounds if handle.session.rounds else f"{handle.name}: no round has finished yet."


def report(desk: Desk, options: Options) -> Shown:
    """The whole record."""
    return desk.stored_handle(options.session, options.store).report()


def panel(desk: Desk, options: Options) -> None:
    """The panel again, in this cell."""
    name = options.session
    if name and name not in desk.names() and name in desk.stored_names():
        raise NotebookUsageError(
            f"{name} is stored and not at work in this kernel: `%cutegen resume {name}` takes it up again, "
            f"`%cutegen report {name}` shows what it did"
        )
    running = desk.find(options.session)
    desk.screen(running).open(running, panel=True)


def diff(desk: Desk, options: Options) -> Shown:
    """The change between two revisions; between the last two unless named."""
    session = desk.stored_handle(options.name, None).session
    able = [item for item in session.rounds if item.candidate]
    words = options.revisions or [revision(item) for item in able[-2:]]
    if len(words) != 2:  # noqa: PLR2004 - a pair
        raise NotebookUsageError(
            f"a diff needs two revisions: {session.name} has "
            f"{', '.join(revision(item) for item in able) or 'none yet'}"
        )
    old, new = (_named(able, word, session) for word in words)
    assert old.candidate is not None
    assert new.candidate is not None
    before, after, names = old.candidate.source, new.candidate.source, (revision(old), revision(new))
    plain = "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="", n=1))
    html = diff_view.render(before, after, old_name=names[0], new_name=names[1])
    return Shown(
        {"text/html": html, "text/plain": visible(plain) or f"{names[1]} is identical to {names[0]}."}
    )


def _named(able: list[Round], word: str, session: Session) -> Round:
    found = next((item for item in able if word.removeprefix("r") == str(item.number)), None)
    if found is None:
        known = ", ".join(revision(item) for item in able) or "none yet"
        raise NotebookUsageError(f"{session.name} has no revision {word!r}: there is {known}")
    return found


def export(desk: Desk, options: Options) -> str:
    """Write a file."""
    if not options.file:
        raise NotebookUsageError(f"export needs a file that ends in one of {', '.join(SUFFIXES)}")
    return desk.stored_handle(options.name, None).export(options.file, unchecked=options.unchecked)


def sessions(desk: Desk, options: Options) -> str:
    """What is stored; of one session, what was made from what."""
    if options.session:
        return lineage_text(desk.stored_handle(options.session, options.store).session)
    if not desk.stored_names(options.store):
        return "No session is stored yet."
    with open_store(Settings(folder=absolute(options.store)), writable=False) as store:
        found = [store.load(name) for name in store.names()]
    header = ("session", "class", "author", "rounds", "best", "created", "ended")
    body = [
        (
            item.name,
            item.facts.workload_class.value,
            item.author,
            str(len(item.rounds)),
            revision(item.best) if item.best else "-",
            item.created_at,
            item.stopped or "may go on",
        )
        for item in found
    ]
    return columns(header, body)


def doctor(desk: Desk, options: Options) -> str:  # noqa: ARG001 - one shape for all
    """What this machine offers."""
    lines = desk.engine.result(examine(settings_from_environment()))
    return columns(
        ("", "what", "found"), [("ok" if line.fine else "!!", line.item, line.value) for line in lines]
    )


def explain(desk: Desk, options: Options) -> str:  # noqa: ARG001 - one shape for all
    """Help."""
    return arguments.help_text(options.command or "")


COMMANDS: dict[str, Command] = {
    "status": status,
    "approve": _decide(Action.APPROVE),
    "reject": _decide(Action.REJECT),
    "overrule": _decide(Action.OVERRULE),
    "steer": _decide(Action.STEER),
    "edit": edit,
    "branch": branch,
    "merge": merge,
    "stop": _decide(Action.STOP),
    "wait": wait,
    "prompt": prompt,
    "replay": replay,
    "rounds": rounds,
    "diff": diff,
    "report": report,
    "panel": panel,
    "export": export,
    "resume": resume,
    "run": run,
    "sessions": sessions,
    "doctor": doctor,
    "help": explain,
}
"""In the order that help lists them; `arguments.PARSERS` has the same names."""
