"""`pending`, `evaluate --batch`, `absorb`: evaluation on the GPU of another host, by JSONL files.

`pending` writes jobs, `evaluate --batch` runs them on that host, `absorb` stores the results here.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeVar

from cutegen_nb.analysis.history.summary import revision
from cutegen_nb.app.output import columns
from cutegen_nb.cli.answer import NONE_PASSED, PASSED, CommandResult
from cutegen_nb.cli.settings import settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.batch import FORMAT, Job, Measurement, Result
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, EvaluatorError, UsageError
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.ports import Evaluator, Progress
from cutegen_nb.core.session import Session
from cutegen_nb.loop.batch import ImportResult, absorb, pending_jobs
from cutegen_nb.wiring import SystemClock, make_evaluator, open_store, versions

NO_TIMES = "no GPU here: the results are counts of the simulator and hold no times"
"""Warning of `evaluate --batch` on a host without a GPU."""

T = TypeVar("T", Job, Result)


async def pending(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """Write a job, one line of JSON, for each kernel of a session that waits for a GPU."""
    with open_store(settings_of(options), writable=False) as store:
        session = store.load(options.session)
    jobs = pending_jobs(session, tier=Tier(options.tier), every=options.every, again=options.again)
    _write(Path(options.output), "".join(f"{json.dumps(encode(job))}\n" for job in jobs))
    names = ", ".join(job.revision for job in jobs)
    if options.json:
        found = {"session": session.name, "file": options.output, "jobs": [job.revision for job in jobs]}
        return CommandResult(status=PASSED, text=json.dumps(found))
    if not jobs:
        return CommandResult(
            status=PASSED, text=f"{session.name} has nothing to time: {options.output} is empty."
        )
    return CommandResult(
        status=PASSED,
        text=f"{options.output}: {len(jobs)} of {session.name} ({names}). On the GPU's host:\n"
        f"  cutegen-nb evaluate --batch {Path(options.output).name} -o results.jsonl\n"
        "and here, with what comes back:\n"
        "  cutegen-nb absorb results.jsonl",
    )


async def evaluate_batch(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Evaluate the jobs, ``--workers`` at once; append each result, one line of JSON, as soon as it exists.

    Jobs with an evaluation in the result file are skipped; a job in which the evaluator itself failed is
    evaluated again. The status is PASSED when every job of the file has passed.
    """
    jobs = list(_read(options.batch, Job))
    target = Path(options.output)
    settings = settings_of(options)
    evaluator = make_evaluator(settings, terminal.say)
    try:
        if (await evaluator.device()).kind is DeviceKind.SIMULATOR:
            terminal.say(NO_TIMES)
        with _appending(target) as file:
            # Read after `_appending`, which removes a half-written last line: its job is evaluated again.
            done = {item.job: item for item in _read(str(target), Result)}
            left = [job for job in jobs if job.digest not in done or done[job.digest].evaluation is None]
            results = _results(left, evaluator, settings.workers, terminal)
            async with contextlib.aclosing(results):
                async for result in results:
                    done[result.job] = result
                    file.write(f"{json.dumps(encode(result))}\n")
                    # On disk at once, so that a crash loses the evaluations that still run and no other.
                    file.flush()
                    os.fsync(file.fileno())
    finally:
        await evaluator.close()
        terminal.clear()
    found = [done[job.digest] for job in jobs]
    fine = all(item.evaluation is not None and item.evaluation.passed for item in found)
    status = PASSED if fine else NONE_PASSED
    if options.json:
        return CommandResult(
            status=status, text=json.dumps({"file": options.output, "results": _rows(found)})
        )
    if not found:
        return CommandResult(
            status=status, text=f"{options.batch} holds no job: there is nothing to evaluate"
        )
    rows = [
        (
            f"{item.revision} of {item.session}",
            item.evaluation.verdict_words if item.evaluation else item.error,
        )
        for item in found
    ]
    return CommandResult(
        status=status, text=f"{columns(('kernel', 'verdict'), rows)}\nresults: {options.output}"
    )


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; choose another file or folder") from error


def _rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    return [
        {
            "session": item.session,
            "revision": item.revision,
            "verdict": item.evaluation.label if item.evaluation else None,
            "library": encode(item.evaluation.library) if item.evaluation else [],
            "error": item.error,
        }
        for item in results
    ]


def _appending(target: Path) -> IO[str]:
    """Open a file for appending, after removing a last line that a killed process left half-written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("a", encoding="utf-8")
        os.truncate(target, target.read_bytes().rfind(b"\n") + 1)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; choose another file or folder") from error
    return file


async def _results(
    jobs: Sequence[Job], evaluator: Evaluator, workers: int, terminal: Terminal
) -> AsyncGenerator[Result, None]:
    """Evaluate `workers` jobs at once; yield each result as soon as it exists."""
    waiting = iter(enumerate(jobs, 1))
    running: set[asyncio.Task[Result]] = set()
    try:
        while True:
            for number, job in itertools.islice(waiting, workers - len(running)):
                terminal.progress(f"{number} of {len(jobs)}: {job.revision} of {job.session}")
                progress = terminal.progress if workers == 1 else _named(job.revision, terminal.progress)
                running.add(asyncio.create_task(_result(job, evaluator, progress)))
            if not running:
                return
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _named(name: str, progress: Progress) -> Progress:
    """Callback that begins each text with a name, for the jobs that run at once."""
    return lambda text: progress(f"{name}: {text}")


async def _result(job: Job, evaluator: Evaluator, progress: Progress) -> Result:
    """Evaluate one job; an error of the evaluator becomes a result with `error` set.

    Raises DeviceUnavailable, which would end every other job as well.
    """
    empty = Result(
        job=job.digest,
        session=job.session,
        revision=job.revision,
        problem_digest=job.problem.digest,
        candidate_digest=job.candidate.digest,
        tier=job.tier,
        evaluation=None,
        rival_digest=job.rival.digest if job.rival else "",
        environment=versions(),
        measured_at=SystemClock().now(),
    )
    try:
        device = await evaluator.device()
        found = await evaluator.evaluate(job.problem, job.candidate, progress, job.tier, rival=job.rival)
    except DeviceUnavailable:
        raise
    except EvaluatorError as error:
        return replace(empty, error=str(error))
    return replace(empty, evaluation=found, device=device)


async def absorb_results(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Store results in the sessions that they belong to, or all in ``--session``."""
    results = list(_read(options.results, Result))
    names = dict.fromkeys([options.session] if options.session else [item.session for item in results])
    lines: list[str] = []
    taken: list[dict[str, Any]] = []
    refused = False
    with open_store(settings_of(options)) as store:
        for name in names:
            own = [item for item in results if options.session or item.session == name]
            if name not in store.names():
                lines.append(f"{name}: no such session here; --session NAME says which one these are for")
                refused = True
                continue
            session = store.load(name)
            found = absorb(session, own, SystemClock().now())
            store.absorb(name, found.measurements)
            session = store.load(name)
            taken += [_measured_row(session, item) for item in found.measurements]
            lines += _absorbed_lines(session, found)
            refused = refused or bool(found.refused)
    terminal.clear()
    status = NONE_PASSED if refused else PASSED
    if options.json:
        return CommandResult(status=status, text=json.dumps({"absorbed": taken, "notes": lines}))
    return CommandResult(status=status, text="\n".join(lines) or f"{options.results} holds no result")


def _absorbed_lines(session: Session, found: ImportResult) -> list[str]:
    lines = [f"{session.name}: {len(found.measurements)} taken in" + _more(found)]
    for item in found.measurements:
        row = _measured_row(session, item)
        because = item.comparison.reason if item.comparison else item.evaluation.summary
        lines.append(f"  {row['revision']}  {row['verdict']} on {item.device.name}: {because}")
    lines += [f"  not taken in: {text}" for text in (*found.refused, *found.failed)]
    if found.measurements and session.best:
        lines.append(f"  best is {revision(session.best)}")
    return lines


def _more(found: ImportResult) -> str:
    return f", {found.repeated} were here already" if found.repeated else ""


def _measured_row(session: Session, item: Measurement) -> dict[str, Any]:
    of = next(r for r in session.rounds if r.candidate and r.candidate.digest == item.candidate_digest)
    timing = item.evaluation.timing
    return {
        "session": session.name,
        "revision": revision(of),
        "verdict": item.evaluation.label,
        "library": encode(item.evaluation.library),
        "relation": item.comparison.relation.value if item.comparison else None,
        "device": item.device.name,
        "median_ms": timing.median_ms if timing else None,
    }


def _read(path: str, kind: type[T]) -> Iterator[T]:
    """Read the jobs or results of a JSONL file; a last line that cannot be read is skipped.

    Raises UsageError for any other wrong line, another format, and a digest that does not fit its job.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; give the path of a file of lines") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            value: T = decode(kind, data)
            stated = data.get("digest", getattr(value, "digest", None))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if number == len(lines):
                return
            raise UsageError(
                f"line {number} of {path} is no {kind.__name__.lower()} ({error}): "
                "take the line out, or have the file written again"
            ) from error
        if value.format != FORMAT:
            raise UsageError(
                f"line {number} of {path} has format {value.format}; this cutegen-nb reads {FORMAT}"
            )
        if stated != getattr(value, "digest", None):
            raise UsageError(
                f"line {number} of {path} was changed after it was written: its digest is not that of its "
                "content; have the file written again"
            )
        yield value
