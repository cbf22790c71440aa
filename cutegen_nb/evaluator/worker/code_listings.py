"""Listings of a candidate's kernels, with the operands of SASS where nvdisasm is installed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from cutegen_nb.analysis.binary.listing import KernelCode, listings_of
from cutegen_nb.core.compiled.listing import CodeListing
from cutegen_nb.evaluator.tools.tool_run import locate

_LONGEST_S = 2.0
"""Seconds that nvdisasm may take for all kernels together, so that a listing costs no verdict."""


def listings(codes: Sequence[KernelCode], architecture: str, folder: Path) -> tuple[CodeListing, ...]:
    """Return the PTX and SASS of kernels; empty where a text cannot be read.

    `folder` is one that this process may write to.
    """
    try:
        return listings_of(codes, architecture, _disassembled_all(codes, folder).__getitem__)
    except Exception:  # noqa: BLE001 - code of another compiler, or a hostile one: no verdict depends on it
        return ()


def _disassembled_all(codes: Sequence[KernelCode], folder: Path) -> dict[bytes, str]:
    """Return what nvdisasm prints for each cubin, run side by side: its start alone takes half a second."""
    cubins = list(dict.fromkeys(code.cubin for code in codes if code.cubin))
    if not cubins:
        return {}
    until = time.monotonic() + _LONGEST_S
    files = [folder / f"module_{number}.cubin" for number in range(len(cubins))]
    with ThreadPoolExecutor(max_workers=len(cubins)) as threads:
        printed = threads.map(partial(_disassembled, until), cubins, files)
    return dict(zip(cubins, printed, strict=True))


def _packaged() -> str:
    """Return the nvdisasm of the package nvidia-cuda-nvdisasm, which puts it on no path; empty without it."""
    found = (tool for folder in sys.path for tool in Path(folder).glob("nvidia/cu*/bin/nvdisasm"))
    return str(next(found, ""))


def _disassembled(until: float, cubin: bytes, file: Path) -> str:
    """Return what nvdisasm prints for a cubin; empty without it, where it fails, and after `until`.

    `file` is written for it.
    """
    tool = locate("nvdisasm") or _packaged()
    left_s = until - time.monotonic()
    if not tool or left_s <= 0:
        return ""
    try:
        file.write_bytes(cubin)
        # Without its data-flow analysis (-ndf) the same text comes in two thirds of the time.
        done = subprocess.run(
            [tool, "-c", "-ndf", str(file)], capture_output=True, text=True, timeout=left_s, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout
