"""`export`, `import`, `verify`: sessions and kernels as files."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from cutegen_nb.cli.commands import NONE_PASSED, PASSED, Answer, read_source, settings_of
from cutegen_nb.cli.evaluated import evaluated_text
from cutegen_nb.cli.exporting import best_to_export, export
from cutegen_nb.cli.output import evaluation_json
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.session import Session
from cutegen_nb.report.kernel_file import DSL, read_kernel_file
from cutegen_nb.store.bundle import read_bundle
from cutegen_nb.wiring import Settings, make_evaluator, open_store, versions

EXPORT = "write a session as one file: .cutegen all of it, .py its best kernel, .html its report"
IMPORT = "take in a session that `export` wrote"
VERIFY = "judge an exported kernel again, against the problem its file holds"


async def export_session(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Write a stored session, its best kernel or its report."""
    settings = settings_of(options)
    with open_store(settings, writable=False) as store:
        session = store.load(options.session)
    judged: Evaluation | None = None
    if Path(options.output).suffix == ".py" and not options.unchecked:
        judged = await _judge(session, best_to_export(session), settings, terminal)
    sentence = export(session, options.output, None if judged is None else lambda _: judged)
    text = json.dumps({"session": session.name, "file": options.output}) if options.json else sentence
    return Answer(status=PASSED, text=text)


async def _judge(
    session: Session, candidate: Candidate, settings: Settings, terminal: Terminal, tier: Tier = Tier.C
) -> Evaluation:
    evaluator = make_evaluator(settings)
    try:
        return await evaluator.evaluate(session.problem, candidate, terminal.progress, tier)
    finally:
        await evaluator.close()
        terminal.clear()


async def import_session(options: argparse.Namespace, terminal: Terminal) -> Answer:  # noqa: ARG001 - one shape for all
    """Take in a session of elsewhere. The same one twice is one."""
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
            sentence = f"{session.name}: {len(session.rounds)} rounds of {session.device.name}, " + (
                f"best r{session.best.number}." if session.best else "none approved."
            )
    text = json.dumps({"session": session.name, "rounds": len(session.rounds)}) if options.json else sentence
    return Answer(status=PASSED, text=text)


def _free(name: str, taken: tuple[str, ...]) -> str:
    """`name`, or with the first number that is free: ``softmax_2``."""
    chosen, number = name, 1
    while chosen in taken:
        number += 1
        chosen = f"{name}_{number}"
    return chosen


async def verify(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Judge an exported kernel as closely as an export does, with what is installed now."""
    kernel = read_kernel_file(read_source(options.file), options.file)
    candidate = Candidate(source=kernel.source, author="person")
    evaluator = make_evaluator(settings_of(options))
    try:
        found = await evaluator.evaluate(kernel.problem, candidate, terminal.progress, Tier(options.tier))
    finally:
        await evaluator.close()
        terminal.clear()
    status = PASSED if found.passed else NONE_PASSED
    notes = _notes(edited=kernel.edited, then=kernel.environment, now=versions())
    if options.json:
        facts = {"revision": kernel.revision, "edited": kernel.edited, "notes": notes}
        return Answer(status=status, text=json.dumps({**facts, **evaluation_json(found)}, indent=2))
    return Answer(status=status, text="\n".join([*notes, evaluated_text(found, candidate, None)]))


def _notes(*, edited: bool, then: dict[str, str], now: dict[str, str]) -> list[str]:
    notes = ["The kernel was edited after its export; it is judged as it stands."] if edited else []
    notes += [
        f"It was judged with {package} {then[package]}; {now.get(package, 'none')} is installed here."
        for package in (DSL, "torch")
        if package in then and then[package] != now.get(package)
    ]
    return notes


def add_options(
    exporting: argparse.ArgumentParser, importing: argparse.ArgumentParser, verifying: argparse.ArgumentParser
) -> None:
    """The options of the three commands, but for --store and --device."""
    exporting.add_argument("session", metavar="SESSION", help="a name that `cutegen-nb sessions` lists")
    exporting.add_argument("-o", "--output", metavar="FILE", required=True, help="FILE.cutegen, .py or .html")
    exporting.add_argument(
        "--unchecked", action="store_true", help="write the kernel without judging it at tier C first"
    )
    importing.add_argument("file", metavar="FILE.cutegen", help="what `cutegen-nb export` wrote")
    importing.add_argument("--name", help="name of the session here; its own unless given")
    verifying.add_argument("file", metavar="KERNEL.py", help="what `cutegen-nb export` wrote")
    verifying.add_argument(
        "--tier",
        choices=[tier.value for tier in Tier],
        default=Tier.C.value,
        help="how closely to look: C as before an export unless given",
    )
