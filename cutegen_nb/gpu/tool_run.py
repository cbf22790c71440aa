"""A candidate's one run under one of NVIDIA's tools: where the tool is, and what is started.

The tool is started around ``gpu.once``, which runs the candidate as confined as an evaluation does but for
the network namespace, which it shares with the tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.gpu import program, sandbox

_RUN = "run"
"""The candidate's own folder within that of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """The candidate under a tool, and what the two may use."""

    problem: Problem
    """The problem."""
    candidate: Candidate
    """Its candidate."""
    rewrites: tuple[Rewrite, ...] = ()
    """Another size of the problem; empty for its own."""
    confine_files: bool
    """Whether CUDA finds the device where files are confined."""
    resident_bytes: int | None
    """Memory that the processes may hold together; None for no limit."""
    deadline_s: float
    """For all of it."""


def locate(tool: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Path of a tool of the CUDA toolkit; None where there is none."""
    folders = [environment.get("PATH", "")]
    folders += [f"{environment[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)]
    return shutil.which(tool, path=os.pathsep.join([*folders, "/usr/local/cuda/bin"]))


@contextlib.asynccontextmanager
async def run_folder() -> AsyncIterator[Path]:
    """A folder for one run and for the tool's report, gone at the end of it."""
    # As an evaluation's: a candidate could tell by its name that it is being looked at.
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=sandbox.SCRATCH_PREFIX))
    try:
        (folder / _RUN).mkdir()  # home and temporary folder, of the tool as well
        yield folder
    finally:
        await asyncio.to_thread(sandbox.remove_folder, folder)


async def run(tool: Sequence[str], guest: Guest, folder: Path, variables: Mapping[str, str]) -> program.End:
    """Run a candidate once under a tool.

    Args:
        tool: path of the tool and its own options.
        guest: the candidate.
        folder: that of `run_folder`.
        variables: what the tool needs in the environment beside an evaluation's.
    """
    return await program.run(
        program.Program(
            command=[*tool, *_once(guest, folder)],
            folder=str(folder),
            environment=sandbox.environment(os.environ, folder / _RUN) | dict(variables),
            deadline_s=guest.deadline_s,
            alone=True,
            resident_bytes=guest.resident_bytes,
        )
    )


def _once(guest: Guest, folder: Path) -> list[str]:
    """The candidate's one run, told by two files in a folder that is not the candidate's."""
    given, kernel = folder / "problem.json", folder / "kernel.py"
    told = {"problem": encode(guest.problem), "rewrites": encode(guest.rewrites)}
    given.write_text(json.dumps(told), encoding="utf-8")
    kernel.write_text(guest.candidate.source, encoding="utf-8")
    return [
        sys.executable, "-P", "-m", "cutegen_nb.gpu.once",
        "--watched", "--seed", str(secrets.randbits(31)),
        *(() if guest.confine_files else ("--open-files",)),
        str(given), str(kernel), str(folder / _RUN),
    ]  # fmt: skip
