"""Evaluators of a Ray cluster for a pool: one actor for each GPU, or for each CPU on the simulator."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Callable, Sequence
from typing import Any

import cutegen_nb
from cutegen_nb.cluster.actor import ActorPlace, EvaluatorActor
from cutegen_nb.cluster.actor_evaluator import ActorEvaluator, first_line
from cutegen_nb.core.errors import ConfigurationError, DeviceUnavailable, EvaluatorError, UsageError
from cutegen_nb.evaluator.evaluator_pool import PoolMember
from cutegen_nb.evaluator.problem_study import ProblemCache

_START_S = 180.0
"""Timeout in seconds of an actor's start: Ray places it, and on a GPU it measures the device first."""
_CONNECT_S = 10.0
"""Timeout in seconds of a first connection to host:port."""
_LOCAL_STORE_BYTES = 80 << 20
"""Size of the object store that ``local`` starts: requests and results are some kilobytes each."""
_ADDRESS = re.compile(r"auto|local|[^\s:/]+:\d+")


class RayMembers:
    """Implements ``PoolMembers`` on a Ray cluster. Ray places the actors and starts lost ones again."""

    def __init__(  # noqa: PLR0913 - the settings of an evaluator, and the cluster's
        self,
        *,
        address: str,
        workers: int,
        device: str,
        baselines: tuple[str, ...],
        screening: bool,
        say: Callable[[str], None],
        architecture: str | None = None,
    ) -> None:
        """Store the settings; `address` is ``auto``, ``local`` or host:port. `say` shows a sentence."""
        self._address = address
        self._workers = workers
        self._device = device
        self._settings = {"architecture": architecture, "baselines": baselines, "screening": screening}
        self._say = say
        self._evaluators: list[ActorEvaluator] = []
        self._connected = False

    async def open(self) -> Sequence[PoolMember]:
        """Connect, and start as many actors as were asked for and the cluster has room for.

        Raises ConfigurationError without Ray, UsageError for a wrong address, DeviceUnavailable without the
        wanted device, EvaluatorError when no actor could be started.
        """
        if not _ADDRESS.fullmatch(self._address):
            raise UsageError(f"--ray {self._address!r} is no address: give auto, local or host:port")
        ray = _imported()
        self._connect(ray)  # in this thread: Ray sets a signal handler, as only the main thread may
        gpus, cores = _resources(ray)
        if self._device == "cuda" and not gpus:
            message = (
                f"The Ray cluster at {self._address} has no GPU; use --device simulator, or add a GPU node."
            )
            raise DeviceUnavailable(message)
        on_gpus = self._device != "simulator" and gpus > 0
        count = min(self._workers, gpus if on_gpus else cores)
        if count < self._workers:
            there = f"{count} GPUs" if on_gpus else f"{count} CPUs"
            self._say(f"--workers {self._workers}: the Ray cluster has {there}, one for each evaluation.")
        options = {"num_cpus": 1, "num_gpus": int(on_gpus), "max_restarts": -1, "max_concurrency": 1}
        remote = ray.remote(EvaluatorActor).options(scheduling_strategy="SPREAD", **options)
        cache = ProblemCache()
        for _ in range(count):
            actor = remote.remote(device="cuda" if on_gpus else "simulator", **self._settings)
            self._evaluators.append(ActorEvaluator(actor, cache))
        return await self._alike()

    async def _alike(self) -> Sequence[PoolMember]:
        """Wait for the actors; keep those that answer, with this version and the first one's device."""
        places = await asyncio.gather(*map(_placed, self._evaluators))
        kept: list[PoolMember] = []
        first: ActorPlace | None = None
        for evaluator, place in zip(self._evaluators, places, strict=True):
            reason = _unlike(place, first)
            if isinstance(place, ActorPlace) and not reason:
                first = first or place
                kept.append(PoolMember(evaluator=evaluator))
                continue
            self._say(f"An evaluator of the cluster is left out: {reason}.")
            await evaluator.close()
        if not kept:
            raise EvaluatorError(
                f"No evaluator could be started on the Ray cluster at {self._address}: "
                f"{_unlike(places[0], None)}. `ray status` shows its nodes."
            )
        return kept

    async def close(self) -> None:
        """End the actors, and the connection where this object made it."""
        evaluators, self._evaluators = self._evaluators, []
        await asyncio.gather(*(evaluator.close() for evaluator in evaluators))
        if self._connected:
            self._connected = False
            await asyncio.to_thread(_imported().shutdown)

    def _connect(self, ray: Any) -> None:  # noqa: ANN401 - Ray is an extra without types
        if ray.is_initialized():
            return
        local = {"include_dashboard": False, "object_store_memory": _LOCAL_STORE_BYTES}
        options = local if self._address == "local" else {}
        try:
            if ":" in self._address:  # Ray itself tries an address where nobody listens for minutes
                host, _, port = self._address.rpartition(":")
                socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
            ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # Ray raises Exception itself where a node does not start in time
            ray.shutdown()
            reason = first_line(error).rstrip(".")
            raise EvaluatorError(
                f"Ray did not start on this machine ({reason}); try again when it has less to do."
                if self._address == "local"
                else f"No Ray cluster answered at {self._address} ({reason}); `ray start --head` starts one, "
                "--ray local needs none."
            ) from error
        self._connected = True


def _imported() -> Any:  # noqa: ANN401 - Ray is an extra without types
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no report to Ray's makers
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError("--ray needs Ray, which is missing: install cutegen-nb[cluster]") from error
    return ray


def _resources(ray: Any) -> tuple[int, int]:  # noqa: ANN401 - Ray is an extra without types
    """GPUs and CPUs of the cluster."""
    found = ray.cluster_resources()
    return int(found.get("GPU", 0)), int(found.get("CPU", 0))


async def _placed(evaluator: ActorEvaluator) -> ActorPlace | str:
    """Place of an actor, or the reason why it has none."""
    try:
        return await asyncio.wait_for(evaluator.place(), _START_S)
    except TimeoutError:
        return f"Ray found no room for it within {_START_S:.0f} s"
    except EvaluatorError as error:
        return str(error).rstrip(".")


def _unlike(place: ActorPlace | str, first: ActorPlace | None) -> str:
    """Reason why an actor cannot stand beside the first one; empty where it can."""
    if isinstance(place, str):
        return place
    if place.version != cutegen_nb.__version__:
        return f"{place.host} has cutegen_nb {place.version}, and this is {cutegen_nb.__version__}"
    if first is not None and place.device.name != first.device.name:
        return f"{place.host} has {place.device.name}, and {first.host} {first.device.name}"
    return ""
