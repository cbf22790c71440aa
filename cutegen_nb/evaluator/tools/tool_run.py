"""Run of a candidate under one of NVIDIA's tools: lookup of the tool, folder and command line.

The tool wraps ``worker.run_once``, which confines the candidate as an evaluation does, with exceptions for
the tool. The candidate shares the tool's network namespace, and no system call is refused.
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
from dataclasses import dataclass, field
from pathlib import Path

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.evaluator.process import guarded_program, process_tree

_RUN = "run"
"""Name of the candidate's own folder within a run's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSubject:
    """Candidate to run under a tool, with the limits of both."""

    problem: Problem
    """The problem."""
    candidate: Candidate
    """Candidate for it."""
    rewrites: tuple[Rewrite, ...] = ()
    """Rewrites that give another size of the problem; empty for its own."""
    confine_files: bool
    """True to confine file access; False where CUDA finds no device under that confinement."""
    resident_bytes: int | None
    """Most resident memory of all processes together, in bytes; None for no limit."""
    deadline_s: float
    """Timeout of the run, in seconds."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the evaluator's processes: the GPU that it is bound to."""


def locate(tool: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Find a CUDA toolkit program on PATH, in CUDA_HOME, CUDA_PATH or /usr/local/cuda; None if absent."""
    folders = [environment.get("PATH", "")]
    folders += [f"{environment[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)]
    return shutil.which(tool, path=os.pathsep.join([*folders, "/usr/local/cuda/bin"]))


@contextlib.asynccontextmanager
async def run_folder() -> AsyncIterator[Path]:
    """Make a folder for one run and the tool's report; it is deleted at the end."""
    # Named as an evaluation's folder: a candidate could tell by another name that it runs under a tool.
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=process_tree.SCRATCH_PREFIX))
    try:
        (folder / _RUN).mkdir()  # home and temporary folder, of the tool as well
        yield folder
    finally:
        await asyncio.to_thread(process_tree.remove_folder, folder)


async def run(
    tool: Sequence[str], guest: ToolSubject, folder: Path, variables: Mapping[str, str]
) -> guarded_program.ProgramEnd:
    """Run a candidate once under a tool.

    Args:
        tool: path of the tool and its own options.
        guest: the candidate and its limits.
        folder: folder from `run_folder`.
        variables: environment variables for the tool, beside an evaluation's.
    """
    return await guarded_program.run(
        guarded_program.GuardedProgram(
            command=[*tool, *_once(guest, folder)],
            folder=str(folder),
            environment=process_tree.environment(os.environ, folder / _RUN)
            | {**guest.variables, **variables},
            deadline_s=guest.deadline_s,
            alone=True,
            resident_bytes=guest.resident_bytes,
        )
    )


def _once(guest: ToolSubject, folder: Path) -> list[str]:
    """Make the command line of the run; its two files stand outside the candidate's folder."""
    given, kernel = folder / "problem.json", folder / "kernel.py"
    told = {"problem": encode(guest.problem), "rewrites": encode(guest.rewrites)}
    given.write_text(json.dumps(told), encoding="utf-8")
    kernel.write_text(guest.candidate.source, encoding="utf-8")
    return [
        sys.executable, "-P", "-m", "cutegen_nb.evaluator.worker.run_once",
        "--watched", "--seed", str(secrets.randbits(31)),
        *(() if guest.confine_files else ("--open-files",)),
        str(given), str(kernel), str(folder / _RUN),
    ]  # fmt: skip
