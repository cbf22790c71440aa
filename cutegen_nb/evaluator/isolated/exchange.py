"""Isolated judgement: a check of a candidate's outputs that its own process cannot forge.

In an ordinary evaluation the candidate shares a process with the judge. Code that finds the judge's channel
there can send a verdict of its own. So before a candidate may become the best, its outputs are judged once
more, by a process that it never enters:

- `isolated_judge` draws inputs from fresh seeds and keeps them. Right answers that it computes before the
  candidate's process has ended, to test whether changed inputs are usable, stay in its own memory.
- `isolated_call` imports the candidate, then gets the inputs as bytes and leaves the outputs as bytes.
- This module, in the person's process, passes file names from one to the other.

The result shows that the *values* are right, whatever the candidate does. The candidate's process also
reports whether PyTorch computed them, because a verdict forged in the ordinary evaluation would hide that.
This report, like the times, comes from a process that holds the candidate, and can be forged.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import CutegenError, WorkerDied
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Exhibit, Finding
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, Workload
from cutegen_nb.evaluator.isolated.reconcile import IsolatedFinding
from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.exit_report import STARTING, raise_reported_error, verdict_without_result
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.evaluator.process.transcript import RecordHandler
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits, Reply, WorkerRun

LARGEST_BYTES = 16 << 30
"""Most bytes of inputs, parameters and outputs of one call that pass through files, at some 1 GB/s."""
_SHARED_BYTES = 64 << 20
"""Bytes of a call from which on a GPU's tensors travel in memory that both processes see."""
_SEVERAL_CALLS_BYTES = 256 << 20
"""Most bytes of a call for which there are three calls; beyond it there is one."""
_LONGER_S = 240.0
"""Seconds that the judge may take beyond the candidate's own deadline."""
_DIGEST_CHARACTERS = 12
_LONGEST = 64
"""Most dimensions of an output, and most characters of its dtype's name, that are accepted."""
# Limits on the record of outputs, which comes from a process that holds the candidate.
_MOST_SETS = 8
_MOST_OUTPUTS = 1024
_LARGEST_EXTENT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedRequest:
    """Candidate to judge in isolation, with its problem."""

    problem: Problem
    """Problem with the reference."""
    candidate: Candidate
    """Candidate to judge."""
    workload: Workload
    """Problem at the size that was judged."""
    longest_sum: int
    """Approximate number of terms in the problem's longest sum."""
    gates: list[dict[str, Any]]
    """Encoded tolerance gates from the problem's admission; empty where there are none."""
    added_inputs: tuple[str, ...] = ()
    """Kinds of inputs on which wrong answers fail that pass on the problem's own inputs."""
    shared: bool = False
    """True if tensors travel in GPU memory that both processes see, False for files."""


async def judge_isolated(
    order: IsolatedRequest, workers: Workers, progress: Progress
) -> tuple[IsolatedFinding, IsolatedFinding | None]:
    """Judge a candidate in isolation; return the judgement, and the one before it if that was a crash.

    A crash or a timeout counts only if it comes twice; wrong values count at once. Raises EvaluatorError
    where the judge itself failed.
    """
    server = await workers.forks()
    await server.ready()
    simulated = (await workers.choice()).kind is DeviceKind.SIMULATOR
    shared = workers.shares and not simulated and order.workload.least_bytes >= _SHARED_BYTES
    order = replace(order, shared=shared)
    too_large = None if shared else await asyncio.to_thread(_too_large, order, server.folder(""))
    if too_large is not None:
        return too_large, None
    progress("judging outside the candidate's process")
    try:
        found, crash = await _once(order, workers, progress), None
        if found.may_be_chance:
            progress("judging outside the candidate's process once more")
            found, crash = await _once(order, workers, progress), found
    except _Unshared:
        workers.shares = False
        return await judge_isolated(order, workers, progress)
    return found, crash


class _Unshared(CutegenError):
    """This driver shares no GPU memory between processes; files may still work."""


def _too_large(order: IsolatedRequest, scratch: Path) -> IsolatedFinding | None:
    size = order.workload.least_bytes
    held = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    always = min(LARGEST_BYTES, held // 4)
    limit = min(always, shutil.disk_usage(scratch).free // 4)
    if size <= limit:
        return None
    note = (
        f"a call's inputs and outputs hold {size / 2**30:.1f} GiB, and {limit / 2**30:.1f} GiB may pass "
        "through files here"
    )
    return IsolatedFinding(evaluation=None, note=note, by_machine=size <= always)


@dataclass(slots=True)
class _Calling(RecordHandler):
    """Handler of the records of the candidate's process; sends the inputs once the candidate is imported."""

    drawn: dict[str, Any] = field(default_factory=dict)
    """Record of the judge on the inputs that it drew."""
    judges: Path = Path()
    """Folder of the judge."""
    folder: Path = Path()
    """Folder of the candidate's process, known when its request is sent."""
    lost: bool = False
    """True if the input files were gone because the judge has ended."""
    given: bool = False
    """True if the process has been given its inputs."""

    def at(self, folder: Path) -> dict[str, Any]:
        """Store the process's folder; no member is added to the request."""
        self.folder = folder
        return {}

    def __call__(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Process one record; the answer to the first ``imported`` is the inputs."""
        if record.get("kind") != "imported":
            return RecordHandler.__call__(self, record)
        if self.given:
            return None  # inputs may be large, and a candidate could ask for them endlessly
        self.given = True
        try:
            for name in self.drawn["files"]:
                (self.judges / name).rename(self.folder / name)
        except OSError:
            self.lost = True
        given: dict[str, Any] = self.drawn["given"]
        return given


@dataclass(slots=True, kw_only=True)
class _Exchange:
    """Handler of the judge's records; runs the candidate's process while the judge waits for outputs."""

    order: IsolatedRequest
    workers: Workers
    heard: RecordHandler
    """Handler of the judge's other records."""
    model_seed: int
    """Seed of the parameters."""
    folder: Path = Path()
    """Folder of the judge, known when its request is sent."""
    ended: Evaluation | None = None
    """Verdict on a candidate that left no outputs; None otherwise."""
    worked: Evaluation | None = None
    """Verdict on a candidate whose own kernels did not do the work in that process; None where they did."""
    failed: CutegenError | None = None
    """Error of the evaluator, to be raised once the judge has ended."""

    def at(self, folder: Path) -> dict[str, Any]:
        """Store the judge's folder; no member is added to the request."""
        self.folder = folder
        return {}

    def __call__(self, record: dict[str, Any]) -> Reply | Awaitable[Reply]:
        """Process one record; the answer to ``drawn`` is the outputs of the candidate's process."""
        return self._between(record) if record.get("kind") == "drawn" else self.heard(record)

    async def _between(self, drawn: dict[str, Any]) -> Reply:
        try:
            return await self._called(drawn)
        except CutegenError as error:
            self.failed = error
        except (OSError, ValueError) as error:
            # Uncaught, the error would end the listening task only, and the judge would wait for its answer.
            self.failed = WorkerDied(
                f"The candidate's outputs did not come to the judge ({str(error)[:300]}); evaluate again."
            )
        return {"sets": None}

    async def _called(self, drawn: dict[str, Any]) -> Reply:
        """Run the candidate; bring its outputs to the judge once no process can change them."""
        limits = await self.workers.limits()
        calling = _Calling(self.heard.progress, drawn=drawn, judges=self.folder)
        request = {
            "kind": "outside-call",
            "source": self.order.candidate.source,
            "digest": self.order.candidate.digest,
            "library": encode(self.order.problem.library),
            "seed": self.model_seed,
            "deadline_s": limits.deadline_s,
            "file_bytes": max(process_tree.LARGEST_FILE_BYTES, self.order.workload.least_bytes),
        }
        run = await self.workers.run(request, limits, calling, files=calling.at, keep=True)
        try:
            if calling.lost:
                raise WorkerDied("The process that judges outside ended too early; evaluate again.")
            if self.order.shared and (calling.result or {}).get("kind") == "unshared":
                raise _Unshared
            self.ended = _ended(calling, run, limits)
            if self.ended is not None or calling.result is None:
                return {"sets": None}
            sets = _announced(calling.result.get("sets"))
            if not self.order.shared:
                self._bring(calling.folder, sets)
            self.worked = _work(calling.result.get("work"))
            return {"sets": sets}
        finally:
            (await self.workers.forks()).discard(run.folder)

    def _bring(self, folder: Path, sets: list[list[dict[str, Any]]]) -> None:
        """Move the announced files and no others; where a move fails, the judge finds no file."""
        for number, forms in enumerate(sets):
            for index in range(len(forms)):
                name = f"output-{number}-{index}"
                with contextlib.suppress(OSError):
                    (folder / name).rename(self.folder / name)


def _ended(calling: _Calling, run: WorkerRun, limits: ProcessLimits) -> Evaluation | None:
    """Verdict on a candidate that left no outputs; None where its process announces some.

    Raises EvaluatorError where the process reports an error of the evaluator.
    """
    record, malformed = calling.result or {}, run.malformed or calling.forged
    raise_reported_error(calling, believed=False)
    kind = record.get("kind")
    if kind == "refused" and not malformed:
        try:
            refused = decode(Evaluation, record["evaluation"])
            if refused.findings and not refused.passed:
                return refused
            malformed = "a refusal that says no fault"
        except (KeyError, TypeError, ValueError) as error:
            malformed = f"a refusal that cannot be read ({error})"
    if kind == "outputs" and not malformed and run.end is not None:
        return None
    if record and kind not in {"outputs", "refused"}:
        malformed = malformed or f"a record of kind {str(kind)[:40]!r}, which only a judge sends"
    return verdict_without_result(replace(run, malformed=malformed), limits, calling.stage or STARTING, "")


def _announced(sets: Any) -> list[list[dict[str, Any]]]:
    """Forms of the outputs that the candidate's process announces; empty where the record is invalid."""
    try:
        return [[_form(form) for form in one[:_MOST_OUTPUTS]] for one in sets[:_MOST_SETS]]
    except (KeyError, TypeError, ValueError):
        return []


def _form(said: Any) -> dict[str, Any]:
    """Validate one output's dtype and shape.

    Raises ValueError for a form that no tensor has, KeyError and TypeError for an invalid record.
    """
    kind, shape = said["dtype"], said["shape"]
    if not isinstance(kind, str) or not isinstance(shape, list) or len(shape) > _LONGEST:
        raise ValueError("no form of a tensor")
    if not all(type(extent) is int and 0 <= extent < _LARGEST_EXTENT for extent in shape):
        raise ValueError("no shape of a tensor")
    return {"dtype": kind[:_LONGEST], "shape": shape}


def _work(said: Any) -> Evaluation | None:
    """Verdict where no kernel did the work, by the candidate process's own report; None where one did."""
    try:
        found = decode(tuple[Finding, ...], said)
    except (KeyError, TypeError, ValueError):
        return None
    if not found:
        return None
    finding = replace(
        found[0], message=f"The values are right in the separate process, but {found[0].message}"
    )
    lines = (finding.line, finding.line) if finding.line else None
    return Evaluation(
        outcome=Judged(verdict=Verdict.CHEATED if finding.kind == "no-kernel" else Verdict.NOT_OWN_WORK),
        summary=finding.message,
        device="",
        findings=(finding,),
        exhibits=(Exhibit(kind=finding.kind, statement=finding.message, lines=lines),),
    )


async def _once(order: IsolatedRequest, workers: Workers, progress: Progress) -> IsolatedFinding:
    """Make one isolated judgement from fresh seeds.

    Raises EvaluatorError where the judge failed, and _Unshared where tensors cannot travel in GPU memory.
    """
    began, limits = time.monotonic(), await workers.limits()
    several = order.workload.least_bytes <= _SEVERAL_CALLS_BYTES
    seeds = [secrets.randbits(31) for _ in range(4 if several else 2)]
    exchange = _Exchange(order=order, workers=workers, heard=RecordHandler(progress), model_seed=seeds[0])
    request = {
        "kind": "outside-judge",
        "problem": encode(order.problem),
        "rewrites": encode(order.workload.rewrites),
        "longest_sum": order.longest_sum,
        "gates": order.gates,
        "seeds": seeds,
        "added_inputs": list(order.added_inputs),
        "file_bytes": LARGEST_BYTES,
        "shared": order.shared,
    }
    longer = replace(limits, deadline_s=limits.deadline_s + _LONGER_S)
    heard = exchange.heard
    # The candidate's worker warms up while the judge draws.
    (await workers.forks()).keep_spare()
    run = await workers.run(request, longer, heard, answer=exchange, files=exchange.at, spare=False)
    if run.end is None:
        heard.result = None  # the judge ended while the candidate still ran
    if exchange.failed is not None:
        raise exchange.failed
    if exchange.ended is not None:
        return IsolatedFinding(evaluation=exchange.ended, note=exchange.ended.summary)
    result = heard.result or {}
    if result.get("kind") == "unshared":
        raise _Unshared
    if result.get("kind") in {"impossible", "error"}:
        note = str(result.get("reason") or result.get("message"))[:300]
        return IsolatedFinding(evaluation=None, note=note, by_machine=result.get("problem") is not True)
    raise_reported_error(heard)
    if result.get("kind") != "compared":
        raise WorkerDied(f"The process that judges outside ended while {heard.stage}; evaluate again.")
    found = decode(Evaluation, result["evaluation"])
    if found.passed and exchange.worked is not None:
        return IsolatedFinding(evaluation=exchange.worked, note=exchange.worked.summary)
    digest = hashlib.sha256(repr(seeds).encode()).hexdigest()[:_DIGEST_CHARACTERS]
    note = f"{found.summary}; digest of the seeds {digest}; {time.monotonic() - began:.1f} s"
    return IsolatedFinding(evaluation=found, note=note)
