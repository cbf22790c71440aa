"""Workers of one device: choice of the device, its measured ceilings, one request per worker."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Iterator
from typing import Any

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, EvaluationLost, WorkerDied
from cutegen_nb.evaluator.process import device as devices
from cutegen_nb.evaluator.process import stored_ceilings
from cutegen_nb.evaluator.process.exit_report import raise_reported_error
from cutegen_nb.evaluator.process.fork_server import Files, ForkServer, TemplateLost
from cutegen_nb.evaluator.process.transcript import RecordHandler
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits, RecordCallback, WorkerRun

FACTS_DEADLINE_S = 60.0
"""Deadline in seconds for tracing a problem, whose file may loop, and for measuring a device."""
DEADLINE_ON_SIMULATOR_S = 60.0
"""Default wall time in seconds of an evaluation on the simulator."""
DEADLINE_ON_GPU_S = 180.0
"""Default wall time in seconds of an evaluation on a GPU, where baselines are compiled too."""

_GROWING_SEGMENTS = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
"""Setting of PyTorch's allocator in workers on a GPU; tools around a candidate see the default allocator.

Without it blocks of 7 GiB are left over where the oracle needs one of 14, and half of the memory is lost."""


class Workers:
    """Device and fork server of one evaluator. No process is started before the first request."""

    def __init__(  # noqa: PLR0913 - the settings of an evaluator
        self,
        *,
        device: str,
        architecture: str | None,
        deadline_s: float | None,
        memory_bytes: int,
        spare: bool | None,
        gpu: str = "",
    ) -> None:
        """Store the settings; the arguments are those of ``KernelEvaluator``."""
        self._wanted = device
        self._gpu = gpu
        self._wanted_architecture = architecture
        self._deadline_s = deadline_s
        self._memory_bytes = memory_bytes
        self._spare = spare
        self._chosen: Device | None = None
        self._device: Device | None = None
        self.server: ForkServer | None = None
        """Fork server of the workers; None before its first use."""
        self.confine_files = True
        """True if workers' access to files is confined; False where CUDA finds no device under Landlock."""
        self.shares = True
        """True if two workers may share GPU memory; False once the driver refused it."""
        self.peak_flops = 0.0
        """Highest measured peak in FLOP/s over all types; 0 before the measurement and on the simulator."""
        self._busy = 0
        self._crowded = False
        self._closed = False

    @contextlib.contextmanager
    def occupied(self) -> Iterator[None]:
        """Mark one evaluation as under way, so that a lost template can be blamed on it if it was alone."""
        self._busy += 1
        self._crowded = self._crowded or self._busy > 1
        try:
            yield
        finally:
            self._busy -= 1
            self._crowded = self._crowded and self._busy > 0

    async def device(self) -> Device:
        """Device that candidates run on; a GPU's bandwidth is measured once. Raises DeviceUnavailable."""
        if self._device is None:
            chosen = await self.choice()
            simulated = chosen.kind is DeviceKind.SIMULATOR
            self._device = chosen if simulated else await self._measured(chosen)
        return self._device

    async def choice(self) -> Device:
        """Choose the device, before any measurement. Raises DeviceUnavailable and UsageError."""
        if self._chosen is None:
            self._chosen = await asyncio.to_thread(
                devices.choose, self._wanted, self._wanted_architecture, self._gpu
            )
        return self._chosen

    async def _measured(self, chosen: Device) -> Device:
        found = await asyncio.to_thread(stored_ceilings.recall, chosen)
        if found is None:
            found = await self._measure(chosen) | {"date": time.strftime("%Y-%m-%d")}
            await asyncio.to_thread(stored_ceilings.keep, chosen, found)
        self.confine_files = bool(found["confined"])
        peaks = {name: float(value) for name, value in found["peak_flops"].items()}
        self.peak_flops = max(peaks.values(), default=0.0)
        return dataclasses.replace(
            chosen,
            bandwidth_bytes_per_s=float(found["bandwidth"]),
            peak_flops=chosen.peak_flops | peaks,
            sm_count=int(found["sm_count"]),
            l2_bytes=int(found["l2_bytes"]),
            memory_bytes=int(found["memory_bytes"]),
            source=f"copy bandwidth and {', '.join(peaks)} measured here on {found['date']}; "
            f"other peaks from {chosen.source}",
        )

    async def _measure(self, chosen: Device) -> dict[str, Any]:
        """Measure the device in a worker; where Landlock hides the device from CUDA, files are left open."""
        for self.confine_files in (True, False):
            heard = RecordHandler(lambda _: None)
            await self.run({"kind": "measure"}, ProcessLimits(deadline_s=FACTS_DEADLINE_S), heard)
            if heard.result is None:
                raise DeviceUnavailable(f"{chosen.name} did not answer; `nvidia-smi` may show why.")
            if heard.result.get("error") != DeviceUnavailable.__name__:
                break
        raise_reported_error(heard)
        assert heard.result is not None
        return heard.result | {"confined": self.confine_files}

    async def run(  # noqa: PLR0913 - a request, and what goes with it
        self,
        request: dict[str, Any],
        limits: ProcessLimits,
        heard: RecordHandler,
        *,
        answer: RecordCallback | None = None,
        files: Files | None = None,
        spare: bool = True,
        keep: bool = False,
    ) -> WorkerRun:
        """Run one request in one worker; retry once with a new template when the old one was lost.

        `answer` handles the worker's records in place of `heard`, and passes records on to it.
        With `keep`, the worker's folder stays until ``ForkServer.discard``.

        Raises EvaluationLost when the template was lost with the workers of several evaluations.
        """
        server = await self.forks()
        server.confine_files = self.confine_files
        try:
            run = await server.run(request, limits, answer or heard, files=files, spare=spare)
        except WorkerDied as error:
            if self._closed or (server.alive and not isinstance(error, TemplateLost)):
                raise
            if heard.stage and self._crowded:
                raise EvaluationLost(str(error)) from error
            if heard.stage:
                # The template died after the worker had begun: the worker is to blame, so no retry.
                return WorkerRun(end=None)
            run = await server.run(request, limits, answer or heard, files=files)
        if not keep:
            server.discard(run.folder)
        return run

    async def forks(self) -> ForkServer:
        """Fork server for the chosen device, created on first use; its template may not run yet."""
        device = await self.choice()
        if self._closed:
            # A cancelled request may get here once more; it must start no process.
            raise WorkerDied("The evaluator was closed while it was asked; start it again.")
        if self.server is None:
            simulated = device.kind is DeviceKind.SIMULATOR
            spare = not simulated if self._spare is None else self._spare
            kind = "simulator" if simulated else "cuda"
            variables = self.variables(device) | ({} if simulated else _GROWING_SEGMENTS)
            self.server = ForkServer(kind, device.architecture, spare=spare, variables=variables)
        return self.server

    @staticmethod
    def variables(device: Device) -> dict[str, str]:
        """Variables that every process of a candidate gets on this device."""
        return {} if device.kind is DeviceKind.SIMULATOR else devices.single_gpu_environment(device)

    async def address_space(self) -> int | None:
        """Limit in bytes on a worker's address space beyond the template's.

        None on a GPU, whose context maps 17 GiB.
        """
        device = await self.choice()
        return self._memory_bytes if device.kind is DeviceKind.SIMULATOR else None

    async def limits(self, longer_s: float = 0.0) -> ProcessLimits:
        """Limits of one run of a candidate; `longer_s` is added to its deadline."""
        simulated = (await self.choice()).kind is DeviceKind.SIMULATOR
        deadline_s = self._deadline_s or (DEADLINE_ON_SIMULATOR_S if simulated else DEADLINE_ON_GPU_S)
        return ProcessLimits(
            deadline_s=deadline_s + longer_s,
            address_space_bytes=await self.address_space(),
            resident_bytes=None if simulated else self.resident_limit(),
        )

    def resident_limit(self) -> int:
        """Limit on resident memory in bytes: half of this machine's memory, at least `memory_bytes`.

        A full-size problem's inputs may pass through the host once.
        """
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(self._memory_bytes, math.floor(pages / 2))

    async def close(self) -> None:
        """End every process, for good."""
        self._closed = True
        server, self.server = self.server, None
        if server is not None:
            await asyncio.to_thread(server.close)
