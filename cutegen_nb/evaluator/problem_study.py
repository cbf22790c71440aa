"""Facts of problems, found once and shared by the evaluators of a host: trace, admission, tolerances."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from cutegen_nb.analysis.problem.workload import longest_sum
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Admission, Problem, ProblemFacts
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.process.exit_report import (
    STARTING,
    raise_reported_error,
    unusable_problem_error,
    verdict_without_result,
)
from cutegen_nb.evaluator.process.pool import FACTS_DEADLINE_S, Workers
from cutegen_nb.evaluator.process.transcript import RecordHandler
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits
from cutegen_nb.evaluator.timing.compile_cache import CompileCache

_LARGEST_ADMITTED_BYTES = 64 << 20
"""Most bytes of a call for which wrong answers are tried on the simulator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProblem:
    """Facts of a problem, found where no candidate can reach them."""

    facts: ProblemFacts
    """Trace and admission."""
    tolerances: tuple[Tolerance, ...] = ()
    """Tolerance of each output; empty where the admission was not tried."""
    noise_fraction: float | None = None
    """Relative noise of the reference's time; None before a first timing."""


class ProblemCache:
    """Known problems by digest, and the folders of their compiled references on this host."""

    def __init__(self) -> None:
        self.folders: dict[str, asyncio.Task[Path | None]] = {}
        """Folders of ``CompileCache``."""
        self._known: dict[str, KnownProblem] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def alone(self, problem: Problem) -> AsyncIterator[None]:
        """Keep others from looking at the same problem during the block."""
        lock = self._locks.setdefault(problem.digest, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            # A lock belongs to one event loop, and a notebook has several: none is kept beyond its use.
            if not lock.locked():
                self._locks.pop(problem.digest, None)

    def find(self, problem: Problem) -> KnownProblem | None:
        """Return the facts of a problem; None before it was studied."""
        return self._known.get(problem.digest)

    def keep(self, problem: Problem, known: KnownProblem) -> None:
        """Store the facts of a problem, unless there are some."""
        self._known.setdefault(problem.digest, known)

    def noise_fraction(self, problem: Problem) -> float | None:
        """Return the noise of the problem's reference; None before a first timing."""
        known = self.find(problem)
        return known.noise_fraction if known else None

    def keep_noise(self, problem: Problem, evaluation: Evaluation) -> None:
        """Store the noise of an evaluation's timing as the problem's, unless there is one."""
        known, timing = self._known.get(problem.digest), evaluation.timing
        if known is not None and timing is not None and known.noise_fraction is None:
            self._known[problem.digest] = replace(known, noise_fraction=timing.noise_fraction)


class ProblemStudy:
    """Study of problems in an evaluator's workers, before any candidate runs."""

    def __init__(self, workers: Workers, cache: ProblemCache, *, compiled: CompileCache) -> None:
        """Start with an evaluator's workers and the caches that it shares with others."""
        self._workers = workers
        self._cache = cache
        self._compiled = compiled

    async def known(self, problem: Problem, progress: Progress) -> KnownProblem:
        """Return a problem's facts, found once per digest. Raises ProblemError when it cannot be used."""
        async with self._cache.alone(problem):
            known = self._cache.find(problem)
            if known is None:
                known = await self._studied(problem, progress)
                self._cache.keep(problem, known)
            else:
                # Facts from another host come without the folder of its compiled reference.
                await self._compiled.begin(problem, known.facts.full)
        return known

    async def _studied(self, problem: Problem, progress: Progress) -> KnownProblem:
        limits = ProcessLimits(
            deadline_s=FACTS_DEADLINE_S, address_space_bytes=await self._workers.address_space()
        )
        heard = RecordHandler(progress)
        run = await self._workers.run(
            {"kind": "facts", "problem": encode(problem)}, limits, heard, spare=False
        )
        if heard.result is None or heard.result.get("kind") != "facts":
            raise_reported_error(heard)
            raise unusable_problem_error(run, limits, heard.stage)
        facts = decode(ProblemFacts, heard.result["facts"])
        await self._compiled.begin(problem, facts.full)
        admission, tolerances = await self._admitted(problem, facts, progress)
        return KnownProblem(facts=replace(facts, admission=admission), tolerances=tolerances)

    async def _admitted(
        self, problem: Problem, facts: ProblemFacts, progress: Progress
    ) -> tuple[Admission, tuple[Tolerance, ...]]:
        """Try wrong answers and find the tolerances, both where no candidate can reach them."""
        simulated = (await self._workers.choice()).kind is DeviceKind.SIMULATOR
        workload = facts.scaled if simulated else facts.full
        if simulated and workload.least_bytes > _LARGEST_ADMITTED_BYTES:
            return Admission(not_tried="the problem is too large for this machine"), ()
        request = {
            "kind": "admit",
            "problem": encode(problem),
            "rewrites": encode(workload.rewrites),
            "longest_sum": longest_sum(workload.graph),
        }
        heard = RecordHandler(progress)
        limits = await self._workers.limits()
        (await self._workers.forks()).keep_spare()  # warms up for the first candidate meanwhile
        run = await self._workers.run(request, limits, heard, spare=False)
        result = heard.result
        if result is None or run.malformed:
            ended = verdict_without_result(run, limits, heard.stage or STARTING, "")
            return Admission(not_tried=_reason(ended, limits)), ()
        if result.get("kind") != "admitted":
            return Admission(not_tried=str(result.get("message", "it failed"))[:300]), ()
        return decode(Admission, result["admission"]), decode(tuple[Tolerance, ...], result["gates"])


def _reason(ended: Evaluation, limits: ProcessLimits) -> str:
    """Return the reason why wrong answers were not tried, to end a sentence."""
    if ended.outcome == Judged(verdict=Verdict.TIMED_OUT):
        return f"that took more than {limits.deadline_s:g} s"
    return ended.summary.removesuffix(".")
