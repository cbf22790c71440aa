"""`export`, `import`, `verify`: exchange of sessions and kernels as files."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from cutegen_nb.app.exporting import best_to_export, ensure_writable, export, export_packed, is_bundle
from cutegen_nb.app.output import evaluation_json
from cutegen_nb.cli.answer import NONE_PASSED, PASSED, CommandResult
from cutegen_nb.cli.evaluated import evaluated_text
from cutegen_nb.cli.settings import read_source, settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.session import Session
from cutegen_nb.report.kernel_file import DSL, read_kernel_file
from cutegen_nb.report.terminal.verdict import VerdictSetting
from cutegen_nb.store.bundle import SUFFIX, read_bundle
from cutegen_nb.wiring import Settings, make_evaluator, open_store, settings_for, versions


async def export_session(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Write a stored session, its best kernel or its report; a kernel is evaluated at tier C first."""
    settings = settings_of(options)
    with open_store(settings, writable=False) as store:
        if not options.output:
            name = store.load(options.session).name
            raise UsageError(
                f"no file to write: give -o {name}_kernel.py (the kernel), {name}.html (the report) "
                f"or {name}{SUFFIX} (all of it)"
            )
        if is_bundle(options.output):
            return _exported(options, export_packed(store.packed(options.session), options.output))
        session = store.load(options.session)
    judged: Evaluation | None = None
    if Path(options.output).suffix == ".py" and not options.unchecked:
        ensure_writable(options.output)
        judged = await _judge(session, best_to_export(session), settings, terminal)
    return _exported(options, export(session, options.output, None if judged is None else lambda _: judged))


def _exported(options: argparse.Namespace, sentence: str) -> CommandResult:
    found = {"session": options.session, "file": options.output}
    return CommandResult(status=PASSED, text=json.dumps(found) if options.json else sentence)


async def _judge(
    session: Session, candidate: Candidate, settings: Settings, terminal: Terminal, tier: Tier = Tier.C
) -> Evaluation:
    evaluator = make_evaluator(settings_for(session, settings))
    try:
        return await evaluator.evaluate(session.problem, candidate, terminal.progress, tier)
    finally:
        await evaluator.close()
        terminal.clear()


async def import_session(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """Store the session of a ``.cutegen`` file, under a free name if its own is taken.

    A session that is stored already, equal in every round, is not stored twice. Raises UsageError when
    ``--name`` is taken by another session, or the name is not an identifier.
    """
    given = read_bundle(Path(options.file))
    session = replace(given, name=options.name or given.name)
    if not session.name.isidentifier():
        raise UsageError(
            f"the session of {options.file} is called {session.name!r}, which is not a Python identifier: "
            "give it another name with --name"
        )
    with open_store(settings_of(options)) as store:
        taken = store.names()
        if session.name in taken and store.load(session.name) == session:
            sentence = f"{session.name} is here already, the same in every round."
        elif options.name and options.name in taken:
            raise UsageError(f"there is another session {options.name!r} here: give a free name with --name")
        else:
            session = replace(session, name=_free(session.name, taken))
            store.create(session)
            sentence = f"{session.name}: {len(session.rounds)} rounds of {session.device.label}, " + (
                f"best r{session.best.number}." if session.best else "none approved."
            )
    text = json.dumps({"session": session.name, "rounds": len(session.rounds)}) if options.json else sentence
    return CommandResult(status=PASSED, text=text)


def _free(name: str, taken: tuple[str, ...]) -> str:
    """Return `name`, or the first free one of ``name_2``, ``name_3`` and so on."""
    chosen, number = name, 1
    while chosen in taken:
        number += 1
        chosen = f"{name}_{number}"
    return chosen


async def verify(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Evaluate an exported kernel again, at tier ``--tier`` and with the packages installed now."""
    kernel = read_kernel_file(read_source(options.file), options.file)
    candidate = Candidate(source=kernel.source, author="person")
    evaluator = make_evaluator(settings_of(options))
    try:
        facts = await evaluator.facts(kernel.problem, terminal.progress)
        device = await evaluator.device()
        found = await evaluator.evaluate(kernel.problem, candidate, terminal.progress, Tier(options.tier))
    finally:
        await evaluator.close()
        terminal.clear()
    status = PASSED if found.passed else NONE_PASSED
    notes = _notes(edited=kernel.edited, then=kernel.environment, now=versions())
    if options.json:
        told = {"revision": kernel.revision, "edited": kernel.edited, "notes": notes}
        return CommandResult(status=status, text=json.dumps({**told, **evaluation_json(found)}, indent=2))
    setting = VerdictSetting(source=kernel.source, facts=facts, device=device)
    text = evaluated_text(found, candidate, setting, verbose=options.verbose)
    return CommandResult(status=status, text="\n".join([*notes, text]))


def _notes(*, edited: bool, then: dict[str, str], now: dict[str, str]) -> list[str]:
    notes = ["The kernel was edited after its export; it is judged as it stands."] if edited else []
    notes += [
        f"It was judged with {package} {then[package]}; {now.get(package, 'none')} is installed here."
        for package in (DSL, "torch")
        if package in then and then[package] != now.get(package)
    ]
    return notes
