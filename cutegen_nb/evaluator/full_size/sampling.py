"""Sample of a candidate at full size, asked of a worker. Runs in the person's process, without torch."""

from __future__ import annotations

import dataclasses
import functools
import os
import time

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import CutegenError, EvaluationLost
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.evaluator.process.early_task import EarlyTask
from cutegen_nb.evaluator.process.evaluation_request import FULL_SIZE_STAGE, FullSizeRequest
from cutegen_nb.evaluator.process.exit_report import raise_reported_error, verdict_without_result
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.evaluator.process.transcript import RecordHandler, escape_for_print
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits

DEADLINE_S = 20.0
"""Wall time in seconds of the import, the compilation and the launches at full size on an idle machine."""
LONGEST_FACTOR = 4.0
"""Largest factor on that time on a busy one."""
_LONGEST_REASON = 600
"""Characters of a reason that are kept."""


def deadline_s() -> float:
    """Return the wall time for a sample: longer in proportion where several processes share a processor.

    Without a sample there is no estimate, and other strategies would win than on an idle machine.
    """
    crowded = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return DEADLINE_S * min(max(1.0, crowded), LONGEST_FACTOR)


class EarlySample:
    """Sample of one candidate that may be taken while the candidate is judged in a process of its own."""

    def __init__(
        self, sampler: FullSizeSampler, problem: Problem, facts: ProblemFacts, candidate: Candidate
    ) -> None:
        self._task = EarlyTask(functools.partial(sampler.sample, problem, facts, candidate, lambda _: None))

    def begin(self) -> None:
        """Start the sample, where a second processor can take it."""
        if len(os.sched_getaffinity(0)) > 1:
            self._task.begin()

    async def result(self, progress: Progress) -> FullSizeSample:
        """Return the sample, begun now if it was not. Raises EvaluationLost."""
        progress(FULL_SIZE_STAGE)
        return await self._task.result()

    async def close(self) -> None:
        """End the sample's process if it runs."""
        await self._task.close()


class FullSizeSampler:
    """Sampler of candidates at full size; each candidate is called once."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._known: dict[tuple[str, str], FullSizeSample] = {}

    async def sample(
        self, problem: Problem, facts: ProblemFacts, candidate: Candidate, progress: Progress
    ) -> FullSizeSample:
        """Call a candidate at the problem's full size on the simulator; return the sampled launches.

        Whatever goes wrong becomes the sample's reason for being missing; only EvaluationLost is raised.
        """
        key = (problem.digest, candidate.digest)
        if key not in self._known:
            self._known[key] = await self._sampled(problem, facts, candidate, progress)
        return self._known[key]

    async def _sampled(
        self, problem: Problem, facts: ProblemFacts, candidate: Candidate, progress: Progress
    ) -> FullSizeSample:
        began = time.monotonic()
        usual = await self._workers.limits()
        # Virtual tensors fill the address space, so the limit is on resident memory.
        limits = ProcessLimits(
            deadline_s=min(deadline_s(), usual.deadline_s), resident_bytes=usual.address_space_bytes
        )
        request = FullSizeRequest(
            problem=problem,
            rewrites=facts.scaled.rewrites,
            source=candidate.source,
            digest=candidate.digest,
            inputs=facts.full.graph.inputs,
            scalars=facts.full.graph.scalars,
            deadline_s=limits.deadline_s,
        )
        try:
            sample = await self._answered(request, limits, RecordHandler(progress))
        except EvaluationLost:
            raise
        except CutegenError as error:
            sample = FullSizeSample(missing=str(error))
        missing = escape_for_print(sample.missing[:_LONGEST_REASON])
        return dataclasses.replace(sample, missing=missing, duration_s=time.monotonic() - began)

    async def _answered(
        self, request: FullSizeRequest, limits: ProcessLimits, heard: RecordHandler
    ) -> FullSizeSample:
        """Have a worker answer. Raises the error that the worker reported."""
        asked = {"kind": "full-size", "request": encode(request)}
        run = await self._workers.run(asked, limits, heard, spare=False)
        raise_reported_error(heard)
        if heard.forged or run.malformed:
            return FullSizeSample(
                missing="The candidate's process sent a record that this package does not send."
            )
        if heard.result is None or run.end is None:
            ended = verdict_without_result(run, limits, heard.stage or "starting", "")
            return FullSizeSample(missing=ended.summary)
        try:
            return decode(FullSizeSample, heard.result["sample"])
        except (KeyError, TypeError, ValueError) as error:
            return FullSizeSample(missing=f"Its process sent a sample that cannot be read ({error}).")
