"""Body of a Ray actor: one evaluator, on the GPU that Ray gave the actor, or on the simulator."""

from __future__ import annotations

import dataclasses
import platform
from typing import Any

import cutegen_nb
from cutegen_nb.core.batch import Job, Result
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import Device
from cutegen_nb.core.problem import Problem
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.problem_study import KnownProblem, ProblemCache

Json = dict[str, Any]
"""Value that ``core.codec`` encoded."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ActorPlace:
    """Place where an actor runs."""

    host: str
    """Name of the machine."""
    version: str
    """Version of cutegen_nb there."""
    device: Device
    """Device that candidates run on there."""


class EvaluatorActor:
    """Evaluator behind an actor's methods, which take and give encoded values.

    A candidate runs in confined child processes of the actor, as on any host. Ray calls one method at a time.
    """

    def __init__(
        self, *, device: str, baselines: tuple[str, ...], screening: bool, architecture: str | None = None
    ) -> None:
        """Store the settings, those of ``KernelEvaluator``."""
        self._cache = ProblemCache()
        self._evaluator = KernelEvaluator(
            device=device,
            architecture=architecture,
            baselines=baselines,
            screening=screening,
            cache=self._cache,
        )

    async def place(self) -> Json:
        """Say where the actor runs: an encoded `ActorPlace`."""
        device = await self._evaluator.device()
        encoded: Json = encode(
            ActorPlace(host=platform.node(), version=cutegen_nb.__version__, device=device)
        )
        return encoded

    async def study(self, problem: Json) -> Json:
        """Trace and admit a problem: an encoded ``KnownProblem``."""
        known: Json = encode(await self._evaluator.known(decode(Problem, problem), _unheard))
        return known

    async def evaluate(self, job: Json, known: Json, *, profile: bool, only_if_faster: bool) -> Json:
        """Carry out a job on a problem that another actor may have studied: an encoded ``Result``."""
        asked = decode(Job, job)
        self._cache.keep(asked.problem, decode(KnownProblem, known))
        evaluation = await self._evaluator.evaluate(
            asked.problem,
            asked.candidate,
            _unheard,
            asked.tier,
            profile=profile,
            rival=asked.rival,
            only_if_faster=only_if_faster,
        )
        result: Json = encode(
            Result(
                job=asked.digest,
                session=asked.session,
                revision=asked.revision,
                problem_digest=asked.problem.digest,
                candidate_digest=asked.candidate.digest,
                tier=asked.tier,
                evaluation=evaluation,
                device=await self._evaluator.device(),
            )
        )
        return result

    async def count(self, problem: Json, candidate: Json) -> Json:
        """Take a GPU's counters of one call: an encoded ``Profile``."""
        counted = await self._evaluator.count(
            decode(Problem, problem), decode(Candidate, candidate), _unheard
        )
        profile: Json = encode(counted)
        return profile


def _unheard(_: str) -> None:
    """Drop the progress text, which has no way to the person from here."""
