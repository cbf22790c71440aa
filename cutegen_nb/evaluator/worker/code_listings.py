"""Listings of a candidate's kernels, with the operands of SASS where nvdisasm is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cutegen_nb.analysis.binary.listing import KernelCode, listings_of
from cutegen_nb.core.compiled.listing import CodeListing
from cutegen_nb.evaluator.tools.tool_run import locate

_LONGEST_S = 5.0
"""Timeout of nvdisasm in seconds, so that a listing costs no verdict."""


def listings(codes: Sequence[KernelCode], architecture: str, folder: Path) -> tuple[CodeListing, ...]:
    """Return the PTX and SASS of kernels; empty where a text cannot be read.

    `folder` is one that this process may write to.
    """
    try:
        return listings_of(codes, architecture, partial(_disassembled, folder))
    except (IndexError, KeyError, ValueError):  # PTX of another compiler: the verdict does not depend on it
        return ()


def _packaged() -> str:
    """Return the nvdisasm of the package nvidia-cuda-nvdisasm, which puts it on no path; empty without it."""
    found = (tool for folder in sys.path for tool in Path(folder).glob("nvidia/cu*/bin/nvdisasm"))
    return str(next(found, ""))


def _disassembled(folder: Path, cubin: bytes) -> str:
    """Return what nvdisasm prints for a cubin; empty without the program and where it fails."""
    tool = locate("nvdisasm") or _packaged()
    if not tool:
        return ""
    file = folder / "module.cubin"
    try:
        file.write_bytes(cubin)
        done = subprocess.run(
            [tool, "-c", str(file)], capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout
