"""Cache of ``torch.compile``'s files for a problem's reference, filled once and copied to each worker.

Compiling takes 4 to 7 s on an H200's host, and every evaluation times the compiled reference. A worker that
runs no candidate fills the cache, while an author writes; an evaluation waits for it. A candidate only ever
sees a copy in its own folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path
from typing import Any

from cutegen_nb.core.codec import encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, Workload
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.evaluator.process.transcript import RecordHandler


class CompileCache:
    """Folders of compiled references, one a problem, in the template process's scratch folder.

    They are deleted with that folder.
    """

    def __init__(
        self, workers: Workers, *, wanted: bool, folders: dict[str, asyncio.Task[Path | None]] | None = None
    ) -> None:
        """Start with the folders of evaluators on the same host; `wanted` is True for ``torch.compile``.

        A folder of None stands for a reference that could not be compiled.
        """
        self._workers = workers
        self._wanted = wanted
        self._folders = {} if folders is None else folders
        self._begun: set[asyncio.Task[Path | None]] = set()

    async def begin(self, problem: Problem, workload: Workload) -> None:
        """Start to compile the reference on a GPU at the size of `workload`, once; `ready` waits for the end.

        Evaluations report a failure.
        """
        if not self._wanted or (await self._workers.choice()).kind is DeviceKind.SIMULATOR:
            return
        task = self._folders.get(problem.digest)
        if task is None or task.cancelled() or not (task.done() or _is_here(task)):
            task = asyncio.create_task(self._fill(problem, workload))
            self._folders[problem.digest] = task
            self._begun.add(task)
            task.add_done_callback(self._begun.discard)

    async def ready(self, problem: Problem, progress: Progress) -> None:
        """Wait for the problem's reference, and for others on this GPU, whose compilation disturbs times."""
        task = self._folders.get(problem.digest)
        tasks = [item for item in (*self._begun, task) if item is not None]
        under_way = {item for item in tasks if not item.done() and _is_here(item)}
        if under_way:
            progress("compiling the reference with torch.compile")
            await asyncio.wait(under_way)

    async def close(self) -> None:
        """Cancel compilations in progress, so that none starts a process after all others have ended."""
        under_way = [task for task in self._begun if task.cancel()]
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _fill(self, problem: Problem, workload: Workload) -> Path | None:
        request = {"kind": "compile", "problem": encode(problem), "rewrites": encode(workload.rewrites)}
        heard = RecordHandler(lambda _: None)
        with contextlib.suppress(CutegenError, OSError):
            limits = await self._workers.limits()
            run = await self._workers.run(request, limits, heard, spare=False, keep=True)
            server = await self._workers.forks()
            if (heard.result or {}).get("kind") == "compiled":
                return server.folder(run.folder)
            server.discard(run.folder)
        return None

    def copy(self, problem: Problem, folder: Path) -> dict[str, Any]:
        """Copy the problem's cache into a worker's `folder`; return no additions to the worker's request."""
        task = self._folders.get(problem.digest)
        cache = task.result() if task is not None and task.done() and not task.cancelled() else None
        if cache is not None:
            with contextlib.suppress(OSError):  # the reference is compiled anew
                shutil.copytree(cache, folder, dirs_exist_ok=True)
                _move(cache, folder)
        return {}


def _is_here(task: asyncio.Task[Path | None]) -> bool:
    """Return whether a task runs under this event loop; unattended sessions have one of their own."""
    return task.get_loop() is asyncio.get_running_loop()


def _move(before: Path, now: Path) -> None:
    """Replace the folder `before` by `now` in the copied files.

    Triton's group files and the pickled kernels of PyTorch name files by their absolute paths, and no worker
    may open those of another. Strings in pickles have a length in front, so binary files are changed only
    where both paths are equally long, as those of two workers are.
    """
    old, new = bytes(before), bytes(now)
    for path in now.rglob("*"):
        if path.is_file() and (len(old) == len(new) or path.suffix == ".json"):
            content = path.read_bytes()
            if old in content:
                path.write_bytes(content.replace(old, new))
