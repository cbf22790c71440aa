"""Handlers of the line magics, and of ``%%cutegen``. Each returns the result that the cell shows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from cutegen_nb.analysis.history.ended import short_reason
from cutegen_nb.analysis.history.summary import outcome
from cutegen_nb.analysis.problem.problem_text import name_from_path, problem_from_string, read_problem
from cutegen_nb.app.budgets import budget_of, plan_of
from cutegen_nb.app.doctor import examine
from cutegen_nb.app.exporting import SUFFIXES
from cutegen_nb.app.output import columns
from cutegen_nb.app.resuming import resumed_problem, resumed_settings
from cutegen_nb.app.sessions_list import sessions_bundle, write_sessions
from cutegen_nb.app.strategies import explanation_text, known_strategies, listing_text, named_strategy
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.round import Action
from cutegen_nb.notebook import arguments, carrying
from cutegen_nb.notebook.approver import Answer
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import DisplayResult, in_blocks
from cutegen_nb.notebook.merging import merge_answer
from cutegen_nb.notebook.population import commands as population_commands
from cutegen_nb.notebook.population.view import slots_text
from cutegen_nb.notebook.review import commands as review_commands
from cutegen_nb.notebook.session_registry import RefineRequest, SessionRegistry, absolute
from cutegen_nb.notebook.teaching.assignments import open_assignment
from cutegen_nb.notebook.teaching.cheating import (
    JudgedCheat,
    judge_own,
    judge_shipped,
    scoreboard_text,
    source_of,
)
from cutegen_nb.report.terminal.lineage import lineage_text
from cutegen_nb.wiring import Settings, open_store, settings_from_environment

Options = argparse.Namespace
Command = Callable[[SessionRegistry, Options], object]
"""Handler of a line magic; its result is a text, an object to display, or None."""

_BELOW_MAGIC = 2
"""Line of a cell that its text begins with, counted as the editor counts: the magic is line 1."""
DEFAULT_NAME = "session"
"""Name of a session whose cell holds a class Model and gives no ``--name``."""


def start(desk: SessionRegistry, options: Options, cell: str) -> None:
    """Refine the problem of the cell, or of the file that ``--problem`` names."""
    desk.start(_wish(options, _of_file(options) if options.problem else _of_cell(cell, options)))


def _of_file(options: Options) -> Problem:
    return read_problem(options.problem, name=options.name, library=options.library)


def _of_cell(cell: str, options: Options) -> Problem:
    if not cell.strip():
        raise NotebookUsageError(
            "the cell is empty: write the problem below %%cutegen, "
            "a class Model or a function with get_inputs"
        )
    problem = problem_from_string(
        cell, name=options.name or DEFAULT_NAME, library=options.library, first_line=_BELOW_MAGIC
    )
    if options.name or problem.form is not ProblemForm.FUNCTION:
        return problem
    return replace(problem, name=name_from_path(problem.function))


def _wish(options: Options, problem: Problem) -> RefineRequest:
    settings = settings_from_environment(
        author=options.author,
        device=options.device,
        baselines=tuple(dict.fromkeys(options.baseline or ())),
        folder=absolute(options.store),
        model=options.model or "",
        base_url=options.base_url or "",
        profile=options.profile or "",
        prompts=absolute(options.prompts) if options.prompts else None,
        target=options.target or "",
        history=not options.no_history,
    )
    return RefineRequest(
        problem=problem,
        settings=settings,
        policy=options.policy,
        rounds=options.rounds,
        budget=budget_of(options, options.rounds),
        plan=plan_of(options),
        strict=options.strict,
    )


def run(desk: SessionRegistry, options: Options) -> None:
    """Refine the problem of a file."""
    desk.start(_wish(options, _of_file(options)))


def resume(desk: SessionRegistry, options: Options) -> None:
    """Resume a stored session; a session that runs in this kernel is only shown again."""
    if options.session in desk.names() and desk.find(options.session).is_at_work():
        return panel(desk, options)
    stored = desk.stored(options.session or "", options.store)
    known = desk.find(stored.name).order.settings.server.base_url if stored.name in desk.names() else ""
    desk.start(
        RefineRequest(
            problem=resumed_problem(stored),
            settings=resumed_settings(stored, options, absolute(options.store), server=known),
            policy=options.policy,
            rounds=options.rounds,
        )
    )
    return None


def status(desk: SessionRegistry, options: Options) -> str:
    """Report the state of a session: running, waiting at a gate, ended, or stored only."""
    if not desk.names() and not options.session:
        stored = desk.stored_names(options.store)
        known = f"; stored: {', '.join(stored)} (`%cutegen resume NAME`)" if stored else ""
        return f"No session runs in this notebook: start one with %%cutegen{known}."
    if options.session and options.session not in desk.names():
        session = desk.stored(options.session, options.store)
        state = short_reason(session.stopped)[0] or "It may go on."
        return f"{session.name}, stored: {outcome(session)} {state}"
    running = desk.find(options.session)
    live, gate = running.live, running.gate
    rounds = running.session.rounds if running.session else ()
    state = (
        f"ended: {short_reason(live.ended)[0]}"
        if live.ended
        else population_commands.gate_words(gate)
        if gate
        else slots_text(live.slots)
        if live.slots
        else f"round {len(rounds)}, {live.doing or 'between two steps'}"
    )
    lines = [f"{running.name}: {state}"]
    if running.session and rounds:
        lines.append(outcome(running.session))
    if not options.session:
        others = [desk.find(name) for name in desk.names() if desk.find(name) is not running]
        if waiting := [other.name for other in others if other.gate]:
            lines.append(
                f"Waiting too: {', '.join(waiting)} (name a session: `%cutegen status {waiting[0]}`)."
            )
    return "\n".join(lines)


def _decide(action: Action) -> Command:
    def deciding(desk: SessionRegistry, options: Options) -> str:
        if not options.name and options.words in desk.names():
            raise NotebookUsageError(
                f"nothing was done: {options.words!r} is the name of a session, not a reason. To "
                f"{action.value} in that session, type `%cutegen {action.value} --name {options.words}`"
            )
        predicted = getattr(options, "predict", "") or ""
        answer = Answer(action=action, reason=options.words, predicted=predicted)
        return desk.asked(options.name).decide(answer)

    return deciding


def branch(desk: SessionRegistry, options: Options) -> str:
    """Answer the open gate with BRANCH: the next round starts from another revision."""
    return desk.asked(options.name).decide(Answer(action=Action.BRANCH, edited=options.revision))


def merge(desk: SessionRegistry, options: Options) -> str:
    """Replace the revision at the open gate by the merge of two revisions."""
    running = desk.asked(options.name)
    return running.decide(merge_answer(running.gate, options.revisions, running.name))


def edit(desk: SessionRegistry, options: Options) -> str | None:
    """Put the text of the open gate into a new cell to edit, or take the new text from a file."""
    running = desk.asked(options.name)
    if options.file:
        text = _file_text(options.file)
        return running.decide(Answer(action=Action.EDIT, edited=text))
    gate = running.gate
    if gate is None:
        raise NotebookUsageError("there is nothing to edit: no decision is waited for now")
    if gate.draft is not None:
        raise NotebookUsageError(f"there is nothing to edit; {gate.words}")
    named = f" --name {options.name}" if options.name else ""
    desk.shell.set_next_input(f"%%cutegen edit{named}\n{gate.text}")
    return None


def _file_text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotebookUsageError(f"{path} cannot be read ({error}): give a text file") from error


def decide_with_cell(desk: SessionRegistry, command: str, rest: str, cell: str) -> str:
    """Run ``%%cutegen edit``, ``steer``, ``reject`` or ``reply`` with the cell as its text."""
    options = arguments.parse_command("edit" if command == "edit" else "steer", rest)
    running = desk.asked(options.name)
    if command == "reply":
        return running.take_reply(cell)
    if command == "edit":
        return running.decide(Answer(action=Action.EDIT, edited=cell))
    return running.decide(Answer(action=Action(command), reason=f"{options.words}\n{cell}"))


def wait(desk: SessionRegistry, options: Options) -> str:
    """Block the cell until the session has ended, waits at a gate, or the timeout has passed."""
    running = desk.find(options.name)
    desk.wait(running, options.timeout)
    return status(desk, Options(session=running.order.problem.name, store=None))


def prompt(desk: SessionRegistry, options: Options) -> DisplayResult:
    """Show the prompt that a person is to carry to a model or to decide on, with a copy button."""
    running = desk.find(options.name)
    if running.asked is None:
        raise NotebookUsageError(f"{running.name} waits for nobody's answer to a prompt now")
    return carrying.shown_prompt(running.asked)


def replay(desk: SessionRegistry, options: Options) -> str | DisplayResult:
    """Replay a recorded session, a line for each round; with a round, show its gate before the decision."""
    if options.round:
        number = options.round.removeprefix("r")
        if not (number.isascii() and number.isdigit()):
            raise NotebookUsageError(f"--round {options.round!r} is no round: write r0, r1 or so")
        return carrying.shown_gate(desk.engine, options.session, absolute(options.store), int(number))
    session, text = carrying.replay_here(desk.engine, options.session, absolute(options.store))
    return f"{text}\n`%cutegen report {session.name}` shows it"


def rounds(desk: SessionRegistry, options: Options) -> object:
    """Return the rounds as a narrow DataFrame, or a sentence if none has finished."""
    handle = desk.stored_handle(options.session, options.store)
    return handle.narrow_rounds if handle.session.rounds else f"{handle.name}: no round has finished yet."


def report(desk: SessionRegistry, options: Options) -> str | DisplayResult:
    """Show the record of a session, or write its report to a file."""
    handle = desk.stored_handle(options.session, options.store)
    if options.output is None:
        return handle.report()
    if Path(options.output).suffix != ".html":
        raise NotebookUsageError(f"a report is one HTML file: let {options.output!r} end in .html")
    return handle.export(options.output)


def panel(desk: SessionRegistry, options: Options) -> None:
    """Show the panel of a session again, in this cell."""
    name = options.session
    if name and name not in desk.names() and name in desk.stored_names():
        raise NotebookUsageError(
            f"{name} is stored and does not run in this notebook: `%cutegen resume {name}` takes it up "
            f"again, `%cutegen report {name}` shows what it did"
        )
    running = desk.find(options.session)
    desk.screen(running).open(running, panel=True)


def export(desk: SessionRegistry, options: Options) -> str:
    """Export a session, its report or its best kernel to a file."""
    file, session = options.output or options.target, options.target if options.output else None
    if not file:
        raise NotebookUsageError(f"export needs a file that ends in one of {', '.join(SUFFIXES)}")
    handle = desk.stored_handle(options.name or session, options.store, device=options.device)
    return handle.export(file, unchecked=options.unchecked)


def sessions(desk: SessionRegistry, options: Options) -> str | DisplayResult:
    """Show the stored sessions as a table, write them as a page, or show one session's lineage."""
    if options.session and not options.html:
        return in_blocks(lineage_text(desk.stored_handle(options.session, options.store).session))
    if not desk.stored_names(options.store):
        return "No session is stored yet."
    with open_store(Settings(folder=absolute(options.store)), writable=False) as store:
        if options.html:
            return f"sessions: {write_sessions(store, options.html, options.session)}"
        return DisplayResult(sessions_bundle(*store.summaries()))


def strategies(desk: SessionRegistry, options: Options) -> str | DisplayResult:  # noqa: ARG001 - one shape for all
    """List the strategies with their recorded effects, or explain one."""
    found = known_strategies(settings_from_environment())
    if options.name:
        return explanation_text(named_strategy(options.name, found))
    return in_blocks(listing_text(found, options.workload_class))


def assignment(desk: SessionRegistry, options: Options) -> str:  # noqa: ARG001 - one shape for all
    """Open an assignment, so that its exercises can be checked, and return it in words."""
    return open_assignment(options.assignment)


def cheat(desk: SessionRegistry, options: Options) -> JudgedCheat | str:
    """Judge a cheat of a file or of the package, or show the source of a shipped one."""
    if options.show:
        return source_of(options.cheat)
    if options.file:
        return judge_own(desk.engine, options.cheat, options.file)
    return judge_shipped(desk.engine, options.cheat)


def scoreboard(desk: SessionRegistry, options: Options) -> str:  # noqa: ARG001 - one shape for all
    """List the person's own cheats."""
    return scoreboard_text()


def doctor(desk: SessionRegistry, options: Options) -> DisplayResult:  # noqa: ARG001 - one shape for all
    """Report the state of this machine, a row an item."""
    lines = desk.engine.result(examine(settings_from_environment()))
    return in_blocks(columns(("", "what", "found"), [(line.mark, line.item, line.value) for line in lines]))


def explain(desk: SessionRegistry, options: Options) -> str:  # noqa: ARG001 - one shape for all
    """Return the help of a command, or of all."""
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
    **{
        action.value: population_commands.deciding(action)
        for action in (Action.PIN, Action.DROP, Action.REQUEST, Action.FORBID, Action.BUDGET)
    },
    "stop": _decide(Action.STOP),
    "wait": wait,
    "prompt": prompt,
    "replay": replay,
    "rounds": rounds,
    "population": population_commands.population,
    "diff": review_commands.diff,
    "compare": review_commands.compare,
    "ptx": review_commands.ptx,
    "report": report,
    "panel": panel,
    "export": export,
    "resume": resume,
    "run": run,
    "sessions": sessions,
    "strategies": strategies,
    "assignment": assignment,
    "cheat": cheat,
    "scoreboard": scoreboard,
    "doctor": doctor,
    "help": explain,
}
"""Handler of each command of `magic_commands`, by name."""
