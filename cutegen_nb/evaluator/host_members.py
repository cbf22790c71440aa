"""Evaluators of one host for a pool: one for each GPU, or one with several places on the simulator."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence

from cutegen_nb.core.device import Device
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.evaluator_pool import PoolMember
from cutegen_nb.evaluator.problem_study import ProblemCache
from cutegen_nb.evaluator.process import device as devices


class HostMembers:
    """Implements ``PoolMembers`` on this host.

    A GPU times one kernel at a time, so each has an evaluator whose processes see no other GPU. On the
    simulator one evaluator makes several evaluations at once: each runs in a fork of its template.
    """

    def __init__(  # noqa: PLR0913 - the settings of an evaluator
        self,
        *,
        workers: int,
        device: str,
        baselines: tuple[str, ...],
        screening: bool,
        say: Callable[[str], None],
        architecture: str | None = None,
    ) -> None:
        """Store the settings, those of ``KernelEvaluator``; `say` shows a sentence to the person."""
        self._workers = workers
        self._device = device
        self._architecture = architecture
        self._baselines = baselines
        self._screening = screening
        self._say = say
        self._evaluators: list[KernelEvaluator] = []

    async def open(self) -> Sequence[PoolMember]:
        """Make as many places as were asked for and this host has; no process is started yet."""
        found = () if self._device == "simulator" else await asyncio.to_thread(devices.find_gpus)
        gpus = [item for item in found if item.name == found[0].name]  # times of two models do not compare
        places = min(self._workers, len(gpus) or len(os.sched_getaffinity(0)))
        if places < self._workers:
            self._say(_reduced(self._workers, gpus, places, len(found)))
        cache = ProblemCache()
        for uuid in [item.uuid for item in gpus[:places]] or [""]:
            self._evaluators.append(
                KernelEvaluator(
                    device=self._device,
                    architecture=self._architecture,
                    baselines=self._baselines,
                    screening=self._screening,
                    gpu=uuid,
                    cache=cache,
                )
            )
        each = 1 if gpus else places
        return [PoolMember(evaluator=evaluator, places=each) for evaluator in self._evaluators]

    async def close(self) -> None:
        """End every process."""
        evaluators, self._evaluators = self._evaluators, []
        await asyncio.gather(*(evaluator.close() for evaluator in evaluators))


def _reduced(workers: int, gpus: Sequence[Device], places: int, visible: int) -> str:
    """Sentence on fewer places than were asked for."""
    if not gpus:
        return (
            f"--workers {workers}: this machine has {places} CPU cores, so {places} evaluations run at once; "
            "more would run into the simulator's deadlines."
        )
    others = visible - len(gpus)
    apart = f" ({others} of another model left out)" if others else ""
    return f"--workers {workers}: {places} × {gpus[0].name} here{apart}; a GPU times one kernel at a time."
