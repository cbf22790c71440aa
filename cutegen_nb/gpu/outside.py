"""A judgement that nothing in the candidate's process can forge.

Inside, the candidate shares a process with the judge, and whoever finds the judge's channel there can send a
verdict of his own.  So before a candidate may become the best, its outputs are judged once more by a process
into which it never comes:

- `outside_judge` draws inputs from fresh seeds and keeps them; right answers that it computes before the
  candidate's process has ended (is a changed set of inputs usable?) stay in its own memory;
- `outside_call` gets the candidate, and after its import the inputs as bytes, and leaves outputs as bytes;
- this module, in the person's process, carries file names from one to the other.

What this shows, whatever the candidate does, is that the *values* are right.  Who computed them is looked at
there as well, because a verdict forged inside would hide it; but that, like the times, is what a process that
holds the candidate says of itself.
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
from cutegen_nb.core.errors import CutegenError, WorkerDied
from cutegen_nb.core.evaluation import CheckState, Evaluation, Exhibit, Finding, Judged, Verdict
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, Workload
from cutegen_nb.gpu import sandbox
from cutegen_nb.gpu.endings import STARTING, raise_ours, without_result
from cutegen_nb.gpu.heard import Heard
from cutegen_nb.gpu.outside_verdict import Found, disagreeing, not_run, with_check
from cutegen_nb.gpu.waiting import Limits, Reply, Run
from cutegen_nb.gpu.workers import Workers

LARGEST_BYTES = 16 << 30
"""Inputs, parameters and outputs of one call, at most: they pass through files, at some 1 GB/s."""
_SEVERAL_CALLS_BYTES = 256 << 20
"""Up to here there are three calls, beyond it one."""
_LONGER_S = 240.0
"""What the judge may take beyond the candidate's own time."""
_DIGEST_CHARACTERS = 12
_LONGEST = 64
"""Extents of an output, and characters of its type's name, that are taken in."""
_MOST_SETS = 8
_MOST_OUTPUTS = 1024
_LARGEST_EXTENT = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is judged."""

    problem: Problem
    """The reference."""
    candidate: Candidate
    """Passed inside."""
    workload: Workload
    """The problem at the size that was judged."""
    longest_sum: int
    """About how many terms its longest sum has."""
    gates: list[dict[str, Any]]
    """Found for the problem before; empty where none were."""
    added_inputs: tuple[str, ...] = ()
    """Kinds of inputs that tell wrong answers from right ones where the problem's own do not."""


async def judged_outside(
    passed: Evaluation, order: Order, workers: Workers, progress: Progress
) -> Evaluation:
    """`passed`, or what became of the candidate where another process finds otherwise.

    A second judgement tells what happens always from what happens now and then: wrong values in one of the
    two decide, a fault only in both. Raises EvaluatorError where the judge itself came to nothing.
    """
    server = await workers.forks()
    await server.ready()
    too_large = await asyncio.to_thread(_too_large, order, server.folder(""))
    if too_large is not None:
        return not_run(passed, too_large)
    progress("judging outside the candidate's process")
    first = await _once(order, workers, progress)
    if first.evaluation is None:
        return not_run(passed, first)
    if first.passed:
        return with_check(passed, CheckState.RAN, first.note)
    progress("judging outside the candidate's process once more")
    second = await _once(order, workers, progress)
    return disagreeing(passed, first.evaluation, second)


def _too_large(order: Order, scratch: Path) -> Found | None:
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
    return Found(evaluation=None, note=note, by_machine=size <= always)


@dataclass(slots=True)
class _Calling(Heard):
    """Hears the candidate's process, and gives it the inputs once it has imported the candidate."""

    drawn: dict[str, Any] = field(default_factory=dict)
    """What the judge said it drew."""
    judges: Path = Path()
    """The judge's folder."""
    folder: Path = Path()
    """The process's own, known when its request is sent."""
    lost: bool = False
    """Whether the inputs were gone: the judge has ended."""
    given: bool = False
    """Whether the process has its inputs."""

    def at(self, folder: Path) -> dict[str, Any]:
        """Note the process's folder."""
        self.folder = folder
        return {}

    def __call__(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Take one record in; the answer to the first ``imported`` is the inputs."""
        if record.get("kind") != "imported":
            return Heard.__call__(self, record)
        if self.given:
            return None  # each answer may be as long as a record can be, and asking again costs nothing
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
    """Hears the judge; in between it has the candidate's process run from its beginning to its end."""

    order: Order
    workers: Workers
    heard: Heard
    """What the judge says else."""
    model_seed: int
    """Of the parameters."""
    folder: Path = Path()
    """The judge's, known when its request is sent."""
    ended: Evaluation | None = None
    """What became of the candidate where it left no outputs."""
    worked: Evaluation | None = None
    """What became of the candidate where PyTorch did its work in that process; None where it did not."""
    failed: CutegenError | None = None
    """Ours, to be raised once the judge has ended."""

    def at(self, folder: Path) -> dict[str, Any]:
        """Note the judge's folder."""
        self.folder = folder
        return {}

    def __call__(self, record: dict[str, Any]) -> Reply | Awaitable[Reply]:
        """Take one record in; the answer to ``drawn`` is what the candidate's process left."""
        return self._between(record) if record.get("kind") == "drawn" else self.heard(record)

    async def _between(self, drawn: dict[str, Any]) -> Reply:
        try:
            return await self._called(drawn)
        except CutegenError as error:
            self.failed = error
        except (OSError, ValueError) as error:
            # Left to itself it would end nothing but the listening, and the judge would wait for its answer.
            self.failed = WorkerDied(
                f"The candidate's outputs did not come to the judge ({str(error)[:300]}); evaluate again."
            )
        return {"sets": None}

    async def _called(self, drawn: dict[str, Any]) -> Reply:
        """Run the candidate and bring its outputs to the judge, once nobody can change them any more."""
        limits = await self.workers.limits()
        calling = _Calling(self.heard.progress, drawn=drawn, judges=self.folder)
        request = {
            "kind": "outside-call",
            "source": self.order.candidate.source,
            "digest": self.order.candidate.digest,
            "seed": self.model_seed,
            "deadline_s": limits.deadline_s,
            "file_bytes": max(sandbox.FILE_BYTES, self.order.workload.least_bytes),
        }
        run = await self.workers.run(request, limits, calling, files=calling.at, keep=True)
        try:
            if calling.lost:
                raise WorkerDied("The process that judges outside ended too early; evaluate again.")
            self.ended = _ended(calling, run, limits)
            if self.ended is not None or calling.result is None:
                return {"sets": None}
            sets = _announced(calling.result.get("sets"))
            self._bring(calling.folder, sets)
            self.worked = _work(calling.result.get("work"))
            return {"sets": sets, "complete": calling.result.get("complete") is True}
        finally:
            (await self.workers.forks()).discard(run.folder)

    def _bring(self, folder: Path, sets: list[list[dict[str, Any]]]) -> None:
        """Move what was announced and nothing else; the judge finds no file where one does not move."""
        for number, forms in enumerate(sets):
            for index in range(len(forms)):
                name = f"output-{number}-{index}"
                with contextlib.suppress(OSError):
                    (folder / name).rename(self.folder / name)


def _ended(calling: _Calling, run: Run, limits: Limits) -> Evaluation | None:
    """What became of a candidate that left no outputs; None where it says that it left some."""
    record, malformed = calling.result or {}, run.malformed or calling.forged
    raise_ours(calling, believed=False)
    kind = record.get("kind")
    if kind == "refused" and not malformed:
        try:
            refused = decode(Evaluation, record["evaluation"])
        except (KeyError, TypeError, ValueError) as error:
            malformed = f"a refusal that cannot be read ({error})"
        else:
            malformed = "" if refused.findings and not refused.passed else "a refusal that says no fault"
            if not malformed:
                return refused
    if kind == "outputs" and not malformed and run.end is not None:
        return None
    if record and kind not in {"outputs", "refused"}:
        malformed = malformed or f"a record of kind {str(kind)[:40]!r}, which none but a judge sends"
    return without_result(replace(run, malformed=malformed), limits, calling.stage or STARTING, "")


def _announced(sets: Any) -> list[list[dict[str, Any]]]:
    """The forms of the outputs that the candidate's process says it left; empty where it says none."""
    try:
        return [[_form(form) for form in one[:_MOST_OUTPUTS]] for one in sets[:_MOST_SETS]]
    except (KeyError, TypeError, ValueError):
        return []


def _form(said: Any) -> dict[str, Any]:
    """One output's type and shape. Raises ValueError for what no tensor has, KeyError and TypeError."""
    kind, shape = said["dtype"], said["shape"]
    if not isinstance(kind, str) or not isinstance(shape, list) or len(shape) > _LONGEST:
        raise ValueError("no form of a tensor")
    if not all(type(extent) is int and 0 <= extent < _LARGEST_EXTENT for extent in shape):
        raise ValueError("no shape of a tensor")
    return {"dtype": kind[:_LONGEST], "shape": shape}


def _work(said: Any) -> Evaluation | None:
    """CHEATED where PyTorch did the work in the candidate's process, as that process itself saw it."""
    try:
        found = decode(tuple[Finding, ...], said)
    except (KeyError, TypeError, ValueError):
        return None
    if not found:
        return None
    finding = replace(found[0], message=f"Its values are right there, but {found[0].message}")
    lines = (finding.line, finding.line) if finding.line else None
    return Evaluation(
        outcome=Judged(verdict=Verdict.CHEATED),
        summary=finding.message,
        device="",
        findings=(finding,),
        exhibits=(Exhibit(kind=finding.kind, statement=finding.message, lines=lines),),
    )


async def _once(order: Order, workers: Workers, progress: Progress) -> Found:
    """One outside judgement from fresh seeds. Raises EvaluatorError where the judge came to nothing."""
    began, limits = time.monotonic(), await workers.limits()
    several = order.workload.least_bytes <= _SEVERAL_CALLS_BYTES
    seeds = [secrets.randbits(31) for _ in range(4 if several else 2)]
    exchange = _Exchange(order=order, workers=workers, heard=Heard(progress), model_seed=seeds[0])
    request = {
        "kind": "outside-judge",
        "problem": encode(order.problem),
        "rewrites": encode(order.workload.rewrites),
        "longest_sum": order.longest_sum,
        "gates": order.gates,
        "seeds": seeds,
        "added_inputs": list(order.added_inputs),
        "file_bytes": LARGEST_BYTES,
    }
    longer = replace(limits, deadline_s=limits.deadline_s + _LONGER_S)
    heard = exchange.heard
    try:
        run = await workers.run(request, longer, heard, answer=exchange, files=exchange.at, spare=False)
        if run.end is None:
            heard.result = None  # it ended while the candidate still ran
    finally:
        (await workers.forks()).keep_spare()
    if exchange.failed is not None:
        raise exchange.failed
    if exchange.ended is not None:
        return Found(evaluation=exchange.ended, note=exchange.ended.summary)
    result = heard.result or {}
    if result.get("kind") in {"impossible", "error"}:
        note = str(result.get("reason") or result.get("message"))[:300]
        return Found(evaluation=None, note=note, by_machine=result.get("problem") is not True)
    raise_ours(heard)
    if result.get("kind") != "compared":
        raise WorkerDied(f"The process that judges outside ended while {heard.stage}; evaluate again.")
    found = decode(Evaluation, result["evaluation"])
    if found.passed and exchange.worked is not None:
        return Found(evaluation=exchange.worked, note=exchange.worked.summary)
    digest = hashlib.sha256(repr(seeds).encode()).hexdigest()[:_DIGEST_CHARACTERS]
    note = f"{found.summary}; digest of the seeds {digest}; {time.monotonic() - began:.1f} s"
    return Found(evaluation=found, note=note)
