"""Evaluator whose work a Ray actor does."""

from __future__ import annotations

import asyncio
from typing import Any

from cutegen_nb.cluster.actor import ActorPlace
from cutegen_nb.core.batch import Job, Result
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import CutegenError, EvaluatorError, EvaluatorLost
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.evaluator.problem_study import KnownProblem, ProblemCache

_AGAIN_S = 1.0
"""Seconds between two questions to an actor that Ray starts again."""


class ActorEvaluator:
    """Implements ``core.ports.Evaluator`` with one actor; a lost actor or node raises EvaluatorLost.

    Each call has one answer from one actor. An answer that comes after its call was given up is dropped, so
    that none counts twice.
    """

    def __init__(self, actor: Any, cache: ProblemCache) -> None:  # noqa: ANN401 - Ray's handle has no type
        """Store the actor's handle and the problems that any actor of the pool has studied."""
        self._actor = actor
        self._cache = cache
        self._host = "a node of the cluster"

    async def place(self) -> ActorPlace:
        """Ask where the actor runs. Raises EvaluatorError."""
        found = decode(ActorPlace, await self._asked("place"))
        self._host = found.host
        return found

    async def device(self) -> Device:
        """Device of the actor; waits for an actor that Ray starts again. Raises EvaluatorError."""
        while True:
            try:
                return (await self.place()).device
            except EvaluatorLost:
                await asyncio.sleep(_AGAIN_S)

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:
        """Trace a problem, once for all actors. Raises ProblemError when it cannot be used."""
        return (await self._known(problem, progress)).facts

    async def _known(self, problem: Problem, progress: Progress) -> KnownProblem:
        async with self._cache.alone(problem):
            if self._cache.find(problem) is None:
                progress(f"tracing the problem on {self._host}")
                known = decode(KnownProblem, await self._asked("study", encode(problem)))
                self._cache.keep(problem, known)
        found = self._cache.find(problem)
        assert found is not None
        return found

    async def evaluate(  # noqa: PLR0913 - the port's arguments
        self,
        problem: Problem,
        candidate: Candidate,
        progress: Progress,
        tier: Tier = Tier.A,
        *,
        profile: bool = False,
        rival: Candidate | None = None,
        only_if_faster: bool = False,
    ) -> Evaluation:
        """Have the actor judge a candidate. Raises EvaluatorError for a fault that is not the candidate's."""
        known = await self._known(problem, progress)
        job = Job(session="", revision="", problem=problem, candidate=candidate, rival=rival, tier=tier)
        progress(f"evaluating on {self._host}")
        answer = await self._asked(
            "evaluate", encode(job), encode(known), profile=profile, only_if_faster=only_if_faster
        )
        result = decode(Result, answer)
        if result.job != job.digest or result.evaluation is None:
            raise EvaluatorError(
                f"{self._host} answered job {result.job[:12]} in place of {job.digest[:12]}; evaluate again."
            )
        self._cache.keep_noise(problem, result.evaluation)
        return result.evaluation

    async def count(self, problem: Problem, candidate: Candidate, progress: Progress) -> Profile:
        """Have the actor take a GPU's counters of one call. Raises EvaluatorError."""
        progress(f"counting on {self._host}")
        return decode(Profile, await self._asked("count", encode(problem), encode(candidate)))

    async def close(self) -> None:
        """End the actor; its child processes end with it."""
        import ray  # noqa: PLC0415 - an extra

        await asyncio.to_thread(ray.kill, self._actor)

    async def _asked(self, method: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - JSON values
        """Call a method of the actor and wait; a cancelled call is cancelled there too.

        Raises the CutegenError that the actor raised, EvaluatorLost when actor or node ended, and
        EvaluatorError for any other failure of Ray.
        """
        import ray  # noqa: PLC0415 - an extra
        from ray import exceptions  # noqa: PLC0415

        call = getattr(self._actor, method).remote(*arguments, **options)
        try:
            return await call
        except asyncio.CancelledError:
            ray.cancel(call)
            raise
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, CutegenError):
                raise error.cause from None
            raise EvaluatorError(
                f"The evaluator on {self._host} failed: {first_line(error.cause)}"
            ) from error
        except (exceptions.RayActorError, exceptions.NodeDiedError, exceptions.WorkerCrashedError) as error:
            raise EvaluatorLost(
                f"The evaluator on {self._host} ended with its process or node; `ray status` lists the nodes."
            ) from error
        except exceptions.RayError as error:
            raise EvaluatorError(f"Ray gave no answer from {self._host}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """First line of an error's text."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
