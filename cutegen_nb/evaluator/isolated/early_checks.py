"""Checks of one candidate in other processes, while its own process compiles and compares.

The isolated judgement and, on a GPU, another shape each compile the candidate anew. Nothing may run beside
the candidate while it is timed, so its process asks to be alone first. A check that runs out of memory while
others run is repeated alone, because a reference may need far more memory than its inputs and outputs.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import EvaluationLost, EvaluatorError
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.ports import Progress
from cutegen_nb.evaluator.catalog.check import NO_MEMORY
from cutegen_nb.evaluator.isolated import exchange, other_shapes
from cutegen_nb.evaluator.isolated.reconcile import IsolatedFinding, reconciled
from cutegen_nb.evaluator.process.early_task import EarlyTask
from cutegen_nb.evaluator.process.pool import Workers

_LEAST_CPUS_ON_GPU = 4
"""CPUs from which on the checks start early on a GPU; on fewer they would slow its compilation."""
_LEAST_CPUS_ON_SIMULATOR = 2
"""The same on the simulator: one process runs beside the candidate's own, and nothing is timed."""
_COPIES = 24
"""Times that a call's inputs, parameters and outputs must fit into the GPU's memory for an early start.

Four processes hold inputs, both outputs and float64 copies at the same time: 17 times as much at the peak for
KernelBench's 2/17, a convolution of 1.6 GB, on an H200.
"""
_LONGEST_WAIT_S = 30.0
"""Seconds that a candidate waits to be alone. A check that takes longer is ended, and made after timing."""


def has_room(device: Device, least_bytes: int) -> bool:
    """Return whether CPUs and the GPU's memory allow the checks to run beside the candidate's own process."""
    simulated = device.kind is DeviceKind.SIMULATOR
    fits = simulated or _COPIES * least_bytes <= device.memory_bytes
    least = _LEAST_CPUS_ON_SIMULATOR if simulated else _LEAST_CPUS_ON_GPU
    return fits and len(os.sched_getaffinity(0)) >= least


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyChecks:
    """Isolated judgement and other shapes of one candidate."""

    at_once: bool
    """True to start both when the candidate is imported, False to start them when it has passed."""
    isolated: EarlyTask[tuple[IsolatedFinding, IsolatedFinding | None]]
    """Isolated judgement, and the one before it if that ended in a crash."""
    shapes: EarlyTask[Evaluation] | None
    """Other shapes; None on the simulator, whose sizes decide in the candidate's own process."""

    def begin(self) -> None:
        """Start the checks if they are to start early."""
        if self.at_once:
            for item in self._tasks():
                item.begin()

    @property
    def crowds(self) -> bool:
        """True if the checks take memory of the GPU beside the candidate's own process."""
        return self.at_once and self.shapes is not None

    async def beside(self, judge: Callable[[EarlyChecks | None], Awaitable[Evaluation]]) -> Evaluation:
        """Have `judge` judge a candidate in its own process beside these checks; if that fails, alone.

        A failure is an error of the evaluator, or memory that ran out or kept a check from running.
        """
        try:
            found = await judge(self)
        except EvaluatorError as error:
            if not self.crowds or isinstance(error, EvaluationLost):
                raise
        else:
            if not self.crowds or not _lacked_memory(found):
                return found
        await self.close()
        return await judge(None)

    async def settle(self) -> None:
        """Wait until no check runs; a check that takes too long is ended and repeated later."""
        await asyncio.gather(*(item.settle(_LONGEST_WAIT_S) for item in self._tasks()))

    async def added_to(self, passed: Evaluation) -> Evaluation:
        """Evaluation of a candidate that passed in its own process, after these checks.

        Raises EvaluatorError where the judge itself failed.
        """
        for item in self._tasks():
            item.begin()
        outside, crash = await self.isolated.result()
        if self.crowds and (outside.evaluation is None or outside.may_be_chance):
            await self.isolated.close()
            outside, crash = await self.isolated.result()
        found = reconciled(passed, outside, crash)
        return found if self.shapes is None else other_shapes.merged(found, await self.shapes.result())

    async def close(self) -> None:
        """End the checks that run."""
        await asyncio.gather(*(item.close() for item in self._tasks()))

    def _tasks(self) -> tuple[EarlyTask[Any], ...]:
        return (self.isolated,) if self.shapes is None else (self.isolated, self.shapes)


def _lacked_memory(found: Evaluation) -> bool:
    out = found.outcome == Judged(verdict=Verdict.OUT_OF_MEMORY)
    return out or any(NO_MEMORY in item.note for item in found.checks)


def prepared(
    order: exchange.IsolatedRequest,
    workers: Workers,
    progress: Progress,
    *,
    at_once: bool,
    simulated: bool,
) -> EarlyChecks:
    """Prepare the checks of `order`'s candidate; `progress` is told of them unless they run early."""

    def told(text: str) -> None:
        if not at_once:
            progress(text)

    shapes = functools.partial(other_shapes.judge_shapes, order, workers)
    return EarlyChecks(
        at_once=at_once,
        isolated=EarlyTask(functools.partial(exchange.judge_isolated, order, workers, told)),
        shapes=None if simulated else EarlyTask(shapes),
    )
