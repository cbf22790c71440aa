"""`cutegen-nb strategies`: the strategies with their recorded effects; export and import of records."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from cutegen_nb.analysis.estimate.targets import with_figures
from cutegen_nb.analysis.knowledge.record_summary import StrategySummary
from cutegen_nb.analysis.problem.problem_text import read_problem
from cutegen_nb.app.strategies import (
    KnownStrategies,
    explanation_text,
    known_strategies,
    listing_text,
    named_strategy,
    ranking,
    ranking_text,
)
from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.settings import settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.codec import encode
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.knowledge import RecordSource
from cutegen_nb.store.knowledge_base import KnowledgeBase, knowledge_folder
from cutegen_nb.store.knowledge_file import read_records, write_records
from cutegen_nb.wiring import make_evaluator


async def strategies(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """List, explain, rank, export or import strategies."""
    asked = {
        "NAME": options.name,
        "--problem": options.problem,
        "--export": options.export,
        "--import": options.import_file,
    }
    several = [name for name, value in asked.items() if value]
    if len(several) > 1:
        raise UsageError(f"{several[0]} and {several[1]} are two requests: give one of the two")
    if options.export:
        return _export(Path(options.export), json_wanted=options.json)
    if options.import_file:
        return _import(Path(options.import_file), json_wanted=options.json)
    known = known_strategies(settings_of(options))
    if options.problem:
        return await _ranked(known, options, terminal)
    if options.name:
        found = named_strategy(options.name, known)
        text = json.dumps(_json(found), indent=2) if options.json else explanation_text(found)
        return CommandResult(status=PASSED, text=text)
    if not options.json:
        return CommandResult(status=PASSED, text=listing_text(known, options.workload_class))
    kind = WorkloadClass(options.workload_class) if options.workload_class else None
    shown = [_json(item) for item in known.summaries if kind is None or item.fits(kind)]
    return CommandResult(
        status=PASSED, text=json.dumps({"file": str(known.path), "strategies": shown}, indent=2)
    )


def _json(item: StrategySummary) -> dict[str, object]:
    speedups = [one.speedup for one in item.records]
    return {
        "name": item.strategy.name,
        "identity": item.strategy.identity,
        "statement": item.strategy.statement,
        "source": item.strategy.source,
        "in_library": item.in_library,
        "classes": list(item.classes),
        "speedup": item.mean,
        "speedup_low": min(speedups, default=None),
        "speedup_high": max(speedups, default=None),
        "measured": item.measured,
        "devices": list(item.devices),
        "records": [encode(one) for one in item.records],
    }


async def _ranked(known: KnownStrategies, options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    problem = read_problem(options.problem)
    settings = settings_of(options)
    evaluator = make_evaluator(settings)
    try:
        facts = await evaluator.facts(problem, terminal.progress)
        device = with_figures(await evaluator.device(), settings.estimate_target)
    finally:
        await evaluator.close()
        terminal.clear()
    found = ranking(known, facts, device)
    if not options.json:
        text = ranking_text(problem.name, known, found, facts, device)
        return CommandResult(status=PASSED, text=text)
    listed = [
        {
            "name": item.strategy.name,
            "identity": item.strategy.identity,
            "expected_speedup": math.exp(item.gain.log_speedup),
            "likeness": item.likeness,
            "records": [one.digest for one in item.gain.records],
        }
        for item in found
    ]
    return CommandResult(
        status=PASSED, text=json.dumps({"problem": problem.name, "strategies": listed}, indent=2)
    )


def _export(path: Path, *, json_wanted: bool) -> CommandResult:
    """Write the records of this machine; those shipped or imported are not its own to pass on."""
    base = KnowledgeBase(knowledge_folder())
    own = [item for item in base.records() if item.source is RecordSource.OWN]
    if not own:
        raise UsageError(
            f"no session of this machine left a record yet in {base.path}: `cutegen-nb demo` makes some"
        )
    write_records(path, own)
    text = f"{len(own)} record{'' if len(own) == 1 else 's'} in {path}: read it before you pass it on"
    found = {"file": str(path), "records": len(own)}
    return CommandResult(status=PASSED, text=json.dumps(found) if json_wanted else text)


def _import(path: Path, *, json_wanted: bool) -> CommandResult:
    records = read_records(path, RecordSource.IMPORTED)
    base = KnowledgeBase(knowledge_folder())
    known = {item.digest for item in base.records() if item.source is RecordSource.OWN}
    added = base.learn([item for item in records if item.digest not in known])
    text = f"{added} new of {len(records)} records of {path}, marked as imported"
    found = {"file": str(path), "records": len(records), "new": added}
    return CommandResult(status=PASSED, text=json.dumps(found) if json_wanted else text)
