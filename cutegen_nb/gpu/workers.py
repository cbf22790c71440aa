"""The processes of one device: which device it is, what it can do, and one request in one worker."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import os
import time
from typing import Any

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, WorkerDied
from cutegen_nb.gpu import device as devices
from cutegen_nb.gpu import measured
from cutegen_nb.gpu.endings import raise_ours
from cutegen_nb.gpu.forkserver import Files, ForkServer
from cutegen_nb.gpu.heard import Heard
from cutegen_nb.gpu.waiting import Answer, Limits, Run

FACTS_DEADLINE_S = 60.0
"""For tracing a problem; its file is the person's own and may still loop."""
DEADLINE_ON_SIMULATOR_S = 60.0
DEADLINE_ON_GPU_S = 180.0


class Workers:
    """Starts nothing before it is asked for something."""

    def __init__(
        self,
        *,
        device: str,
        architecture: str | None,
        deadline_s: float | None,
        memory_bytes: int,
        spare: bool | None,
    ) -> None:
        """The arguments are those of ``KernelEvaluator``."""
        self._wanted = device
        self._wanted_architecture = architecture
        self._deadline_s = deadline_s
        self._memory_bytes = memory_bytes
        self._spare = spare
        self._chosen: Device | None = None
        self._device: Device | None = None
        self.server: ForkServer | None = None
        """What forks them; None while there is none."""
        self.confine_files = True
        """Whether they read and write only what a candidate needs; not where CUDA finds no device then."""
        self.peak_flops = 0.0
        """Highest that was measured, over all types; 0 before, and on the simulator."""

    async def device(self) -> Device:
        """What candidates run on; a GPU's bandwidth is measured once. Raises DeviceUnavailable."""
        if self._device is None:
            chosen = await self.choice()
            simulated = chosen.kind is DeviceKind.SIMULATOR
            self._device = chosen if simulated else await self._measured(chosen)
        return self._device

    async def choice(self) -> Device:
        """The device, before anything of it is measured. Raises DeviceUnavailable."""
        if self._chosen is None:
            self._chosen = await asyncio.to_thread(devices.choose, self._wanted, self._wanted_architecture)
        return self._chosen

    async def _measured(self, chosen: Device) -> Device:
        found = await asyncio.to_thread(measured.recall, chosen)
        if found is None:
            found = await self._measure(chosen) | {"date": time.strftime("%Y-%m-%d")}
            await asyncio.to_thread(measured.keep, chosen, found)
        self.confine_files = bool(found["confined"])
        peaks = {name: float(value) for name, value in found["peak_flops"].items()}
        self.peak_flops = max(peaks.values(), default=0.0)
        return dataclasses.replace(
            chosen,
            bandwidth_bytes_per_s=float(found["bandwidth"]),
            peak_flops=chosen.peak_flops | peaks,
            sm_count=int(found["sm_count"]),
            l2_bytes=int(found["l2_bytes"]),
            source=f"copy bandwidth and {', '.join(peaks)} measured here on {found['date']}; "
            f"other peaks from {chosen.source}",
        )

    async def _measure(self, chosen: Device) -> dict[str, Any]:
        """What the device itself says; where confined files hide it from CUDA, they are left open."""
        for self.confine_files in (True, False):
            heard = Heard(lambda _: None)
            await self.run({"kind": "measure"}, Limits(deadline_s=FACTS_DEADLINE_S), heard)
            if heard.result is None:
                raise DeviceUnavailable(f"{chosen.name} did not answer; `nvidia-smi` may show why.")
            if heard.result.get("error") != DeviceUnavailable.__name__:
                break
        raise_ours(heard)
        assert heard.result is not None
        return heard.result | {"confined": self.confine_files}

    async def run(  # noqa: PLR0913 - a request, and what goes with it
        self,
        request: dict[str, Any],
        limits: Limits,
        heard: Heard,
        *,
        answer: Answer | None = None,
        files: Files | None = None,
        spare: bool = True,
        keep: bool = False,
    ) -> Run:
        """One request in one worker; once more with a new template when the old one was lost.

        `answer` hears its records in place of `heard`, which it hands them on to.
        With `keep` what the worker left in its folder stays until ``ForkServer.discard``.
        """
        server = await self.forks()
        server.confine_files = self.confine_files
        try:
            run = await server.run(request, limits, answer or heard, files=files, spare=spare)
        except WorkerDied:
            if await server.survived():
                raise
            server.close()
            if heard.stage:
                # It died with the worker at work: that was the worker's doing, not ours.
                return Run(end=None)
            run = await server.run(request, limits, answer or heard, files=files)
        if not keep:
            server.discard(run.folder)
        return run

    async def forks(self) -> ForkServer:
        """What forks workers; it may not run yet."""
        if self.server is None:
            device = await self.choice()
            simulated = device.kind is DeviceKind.SIMULATOR
            spare = not simulated if self._spare is None else self._spare
            kind = "simulator" if simulated else "cuda"
            alone = {} if simulated else devices.alone(device)
            self.server = ForkServer(kind, device.architecture, spare=spare, variables=alone)
        return self.server

    async def address_space(self) -> int | None:
        """Bytes that a worker may map besides the template's; None on a GPU, whose context maps 17 GiB."""
        device = await self.choice()
        return self._memory_bytes if device.kind is DeviceKind.SIMULATOR else None

    async def limits(self, longer_s: float = 0.0) -> Limits:
        """What one run of a candidate may use."""
        simulated = (await self.choice()).kind is DeviceKind.SIMULATOR
        deadline_s = self._deadline_s or (DEADLINE_ON_SIMULATOR_S if simulated else DEADLINE_ON_GPU_S)
        return Limits(
            deadline_s=deadline_s + longer_s,
            address_space_bytes=await self.address_space(),
            resident_bytes=None if simulated else self.resident_limit(),
        )

    def resident_limit(self) -> int:
        """Half of this machine's memory: a full-size problem's inputs may pass through the host once."""
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(self._memory_bytes, math.floor(pages / 2))

    async def close(self) -> None:
        """End every process."""
        server, self.server = self.server, None
        if server is not None:
            await asyncio.to_thread(server.close)
