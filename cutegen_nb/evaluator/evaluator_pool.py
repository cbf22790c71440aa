"""Several evaluators behind one port. An evaluation takes a free place and gives it back at its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import EvaluationLost, EvaluatorError, EvaluatorLost
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.ports import Evaluator, Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile

ATTEMPTS = 3
"""Most attempts at one evaluation, each after a loss of processes or of an evaluator."""
_RETURN_S = 60.0
"""Seconds in which a lost evaluator may come back; until then others take its evaluations."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolMember:
    """Evaluator of a pool."""

    evaluator: Evaluator
    places: int = 1
    """Number of evaluations that it can make at once."""


class PoolMembers(Protocol):
    """Source of a pool's members."""

    async def open(self) -> Sequence[PoolMember]:
        """Start the members, at least one. Raises CutegenError."""
        ...

    async def close(self) -> None:
        """End the members and every process of theirs."""
        ...


class EvaluatorPool:
    """Implements ``core.ports.Evaluator`` over several evaluators; calls wait for a free place in order."""

    def __init__(self, source: PoolMembers) -> None:
        """Start nothing yet; the members are started on first use."""
        self._source = source
        self._members: list[PoolMember] | None = None
        self._opening = asyncio.Lock()
        self._used: Counter[PoolMember] = Counter()
        self._waiting: deque[tuple[bool, asyncio.Future[PoolMember]]] = deque()
        self._returning: set[asyncio.Task[None]] = set()
        self._device: Device | None = None
        self._facts: dict[str, ProblemFacts] = {}
        self._last_loss = ""

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:
        """Trace a problem, once per digest, in one member. Raises ProblemError when it cannot be used."""
        if problem.digest not in self._facts:
            found = await self._placed(lambda evaluator: evaluator.facts(problem, progress))
            self._facts[problem.digest] = found
        return self._facts[problem.digest]

    async def device(self) -> Device:
        """Device of the first member; all members have the same kind of device. Raises DeviceUnavailable."""
        if self._device is None:
            self._device = await self._placed(lambda evaluator: evaluator.device())
        return self._device

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
        """Judge a candidate in a free member; the arguments are those of the port.

        An evaluation that was lost with its processes or its evaluator is made again, in a member that does
        nothing else meanwhile. Raises EvaluatorError when it was lost `ATTEMPTS` times, or no member is left.
        """
        return await self._placed(
            lambda evaluator: evaluator.evaluate(
                problem,
                candidate,
                progress,
                tier,
                profile=profile,
                rival=rival,
                only_if_faster=only_if_faster,
            )
        )

    async def count(self, problem: Problem, candidate: Candidate, progress: Progress) -> Profile:
        """Take a GPU's counters of one call in a free member. Raises EvaluatorError."""
        return await self._placed(lambda evaluator: evaluator.count(problem, candidate, progress))

    async def close(self) -> None:
        """End every member."""
        for task in self._returning:
            task.cancel()
        await asyncio.gather(*self._returning, return_exceptions=True)
        self._members = None
        await self._source.close()

    async def _placed(self, ask: Callable[[Evaluator], Awaitable[T]]) -> T:
        async with self._opening:
            if self._members is None:
                self._members = list(await self._source.open())
        for attempt in range(1, ATTEMPTS + 1):
            async with self._place(alone=attempt > 1) as member:
                try:
                    return await ask(member.evaluator)
                except EvaluationLost as error:
                    if isinstance(error, EvaluatorLost):
                        self._leave_out(member)
                    self._last_loss = str(error)
        raise EvaluatorError(f"The evaluation was lost {ATTEMPTS} times and is given up: {self._last_loss}")

    @contextlib.asynccontextmanager
    async def _place(self, *, alone: bool) -> AsyncIterator[PoolMember]:
        """Take one place of a member, or all of its places if `alone`; give them back at the end."""
        turn: asyncio.Future[PoolMember] = asyncio.get_running_loop().create_future()
        self._waiting.append((alone, turn))
        self._assign()
        try:
            yield await turn
        finally:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                member = turn.result()
                self._used[member] -= member.places if alone else 1
            turn.cancel()
            self._assign()

    def _assign(self) -> None:
        """Give free places to the calls that wait, the first one first."""
        while self._waiting:
            alone, turn = self._waiting[0]
            if not turn.done():
                member = self._free(alone=alone)
                if member is None and (self._members or self._returning):
                    return
                if member is None:
                    turn.set_exception(EvaluatorError(f"No evaluator is left: {self._last_loss}"))
                else:
                    self._used[member] += member.places if alone else 1
                    turn.set_result(member)
            self._waiting.popleft()

    def _free(self, *, alone: bool) -> PoolMember | None:
        for member in self._members or ():
            if self._used[member] + (member.places if alone else 1) <= member.places:
                return member
        return None

    def _leave_out(self, member: PoolMember) -> None:
        """Take a lost member out of the pool until its evaluator answers again."""
        if self._members and member in self._members:
            self._members.remove(member)
            task = asyncio.ensure_future(self._taken_back(member))
            self._returning.add(task)
            task.add_done_callback(self._returned)

    async def _taken_back(self, member: PoolMember) -> None:
        with contextlib.suppress(EvaluatorError, TimeoutError):
            await asyncio.wait_for(member.evaluator.device(), _RETURN_S)
            if self._members is not None:
                self._members.append(member)

    def _returned(self, task: asyncio.Task[None]) -> None:
        self._returning.discard(task)
        self._assign()
