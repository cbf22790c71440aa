"""`pending`, `evaluate --batch`, `absorb`: a GPU that is elsewhere, by files."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeVar

from cutegen_nb.analysis.summary import revision
from cutegen_nb.cli.commands import NONE_PASSED, PASSED, Answer, settings_of
from cutegen_nb.cli.output import columns
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.batch import FORMAT, Job, Result
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, EvaluatorError, UsageError
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.measurement import Measurement
from cutegen_nb.core.ports import Evaluator
from cutegen_nb.core.session import Session
from cutegen_nb.loop.batch import Absorbed, absorb, pending_jobs
from cutegen_nb.wiring import SystemClock, make_evaluator, open_store, versions

PENDING = "write the kernels of a session that nothing timed yet, to be evaluated elsewhere"
ABSORB = "take in what `evaluate --batch` found elsewhere"

NO_TIMES = "no GPU here: the results are counts of the simulator and hold no times"

T = TypeVar("T", Job, Result)


async def pending(options: argparse.Namespace, terminal: Terminal) -> Answer:  # noqa: ARG001 - one shape for all
    """Write a line for each kernel that waits for a GPU."""
    with open_store(settings_of(options), writable=False) as store:
        session = store.load(options.session)
    jobs = pending_jobs(session, tier=Tier(options.tier), every=options.every, again=options.again)
    _write(Path(options.output), "".join(f"{json.dumps(encode(job))}\n" for job in jobs))
    names = ", ".join(job.revision for job in jobs)
    if options.json:
        found = {"session": session.name, "file": options.output, "jobs": [job.revision for job in jobs]}
        return Answer(status=PASSED, text=json.dumps(found))
    if not jobs:
        return Answer(status=PASSED, text=f"{session.name} has nothing to time: {options.output} is empty.")
    return Answer(
        status=PASSED,
        text=f"{options.output}: {len(jobs)} of {session.name} ({names}). On the GPU's host:\n"
        f"  cutegen-nb evaluate --batch {Path(options.output).name} -o results.jsonl\n"
        "and here, with what comes back:\n"
        "  cutegen-nb absorb results.jsonl",
    )


async def evaluate_batch(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Evaluate jobs one after another, a line each as soon as it is there; what is in the file is left out.

    Passes when every job of the file has passed; a job in which the evaluator failed is tried again by the
    next call.
    """
    jobs = list(_read(options.batch, Job))
    target = Path(options.output)
    evaluator = make_evaluator(settings_of(options))
    try:
        if (await evaluator.device()).kind is DeviceKind.SIMULATOR:
            terminal.say(NO_TIMES)
        with _appending(target) as file:
            # After the file was opened: a last line without its end is taken away there, and done again.
            done = {item.job: item for item in _read(str(target), Result)}
            left = [job for job in jobs if job.digest not in done or done[job.digest].evaluation is None]
            for number, job in enumerate(left, 1):
                terminal.progress(f"{number} of {len(left)}: {job.revision} of {job.session}")
                done[job.digest] = await _result(job, evaluator, terminal)
                file.write(f"{json.dumps(encode(done[job.digest]))}\n")
                file.flush()
                os.fsync(file.fileno())
    finally:
        await evaluator.close()
        terminal.clear()
    results = [done[job.digest] for job in jobs]
    fine = all(item.evaluation is not None and item.evaluation.passed for item in results)
    status = PASSED if fine else NONE_PASSED
    if options.json:
        return Answer(status=status, text=json.dumps({"file": options.output, "results": _rows(results)}))
    if not results:
        return Answer(status=status, text=f"{options.batch} holds no job: there is nothing to evaluate")
    rows = [
        (f"{item.revision} of {item.session}", item.evaluation.label if item.evaluation else item.error)
        for item in results
    ]
    return Answer(status=status, text=f"{columns(('kernel', 'verdict'), rows)}\nresults: {options.output}")


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
            "error": item.error,
        }
        for item in results
    ]


def _appending(target: Path) -> IO[str]:
    """The file to append lines to; a line that a killed process left half-written is taken away first."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("a", encoding="utf-8")
        os.truncate(target, target.read_bytes().rfind(b"\n") + 1)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}; choose another file or folder") from error
    return file


async def _result(job: Job, evaluator: Evaluator, terminal: Terminal) -> Result:
    """Evaluate one job. A fault of ours is a result too; a device that is missing is none for any job."""
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
        found = await evaluator.evaluate(
            job.problem, job.candidate, terminal.progress, job.tier, rival=job.rival
        )
    except DeviceUnavailable:
        raise
    except EvaluatorError as error:
        return replace(empty, error=str(error))
    return replace(empty, evaluation=found, device=device)


async def absorb_results(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Take in results for the sessions they are of."""
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
            lines += _told(session, found)
            refused = refused or bool(found.refused)
    terminal.clear()
    status = NONE_PASSED if refused else PASSED
    if options.json:
        return Answer(status=status, text=json.dumps({"absorbed": taken, "notes": lines}))
    return Answer(status=status, text="\n".join(lines) or f"{options.results} holds no result")


def _told(session: Session, found: Absorbed) -> list[str]:
    lines = [f"{session.name}: {len(found.measurements)} taken in" + _more(found)]
    for item in found.measurements:
        row = _measured_row(session, item)
        because = item.comparison.reason if item.comparison else item.evaluation.summary
        lines.append(f"  {row['revision']}  {row['verdict']} on {item.device.name}: {because}")
    lines += [f"  not taken in: {text}" for text in (*found.refused, *found.failed)]
    if found.measurements and session.best:
        lines.append(f"  best is {revision(session.best)}")
    return lines


def _more(found: Absorbed) -> str:
    return f", {found.repeated} were here already" if found.repeated else ""


def _measured_row(session: Session, item: Measurement) -> dict[str, Any]:
    of = next(r for r in session.rounds if r.candidate and r.candidate.digest == item.candidate_digest)
    timing = item.evaluation.timing
    return {
        "session": session.name,
        "revision": revision(of),
        "verdict": item.evaluation.label,
        "relation": item.comparison.relation.value if item.comparison else None,
        "device": item.device.name,
        "median_ms": timing.median_ms if timing else None,
    }


def _read(path: str, kind: type[T]) -> Iterator[T]:
    """The values of a file of lines. A last line that was cut is left out; any other wrong one is refused."""
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
                f"line {number} of {path} was changed: its digest is not that of what it asks for"
            )
        yield value


def add_options(waiting: argparse.ArgumentParser, absorbing: argparse.ArgumentParser) -> None:
    """The options of `pending` and `absorb`, but for --store."""
    waiting.add_argument("session", metavar="SESSION", help="a name that `cutegen-nb sessions` lists")
    waiting.add_argument(
        "-o", "--output", metavar="JOBS.jsonl", required=True, help="where to write the jobs"
    )
    waiting.add_argument(
        "--tier",
        choices=[tier.value for tier in Tier],
        default=Tier.B.value,
        help="how closely to look there",
    )
    waiting.add_argument("--every", action="store_true", help="all that passed, not the approved ones alone")
    waiting.add_argument("--again", action="store_true", help="also what was measured elsewhere before")
    absorbing.add_argument("results", metavar="RESULTS.jsonl", help="what `evaluate --batch` wrote")
    absorbing.add_argument("--session", help="the session they are for, where it has another name here")
