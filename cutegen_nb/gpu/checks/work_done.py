"""Did a kernel of the candidate's make these outputs? Asked of every call on the simulator.

Decides only on what was seen: no launch at all, or an output whose bytes no launch stored and PyTorch did
not copy from one that was, and that equal nothing that a kernel left anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Exhibit, Finding, Severity
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.gpu.calling import Called, Origin
from cutegen_nb.gpu.checks.registry.work import LAUNCHED, SAME_LAUNCHES, WRITTEN
from cutegen_nb.gpu.comparing import excerpts
from cutegen_nb.gpu.correctness import bits_equal
from cutegen_nb.gpu.record import Ending, Evidence

_NO_ELEMENTS = "the outputs have no elements"


def judge_work(called: Called, drawn: Sequence[Any], which: str, state: Evidence) -> Ending | None:
    """CHEATED where an output of this call came from no kernel; None otherwise and on a GPU.

    `which` names the call in messages: ``the first call``.
    """
    if called.launches is None or called.origins is None:
        return None
    outputs = [leaf for leaf in called.leaves if isinstance(leaf, torch.Tensor)]
    if not any(output.numel() for output in outputs):
        state.skipped(LAUNCHED, _NO_ELEMENTS)
        state.skipped(WRITTEN, _NO_ELEMENTS)
        return None
    if not called.launches:
        message = (
            f"The outputs are right but no kernel was launched in {which} of forward: something else made "
            "them."
        )
        return state.cheated(LAUNCHED, _exhibit("no-kernel", message, called, drawn, outputs))
    state.ran(LAUNCHED)
    return _written(called, drawn, which, outputs, state)


def _written(
    called: Called, drawn: Sequence[Any], which: str, outputs: Sequence[torch.Tensor], state: Evidence
) -> Ending | None:
    assert called.origins is not None
    unmade = [
        index
        for index, (origin, output) in enumerate(zip(called.origins, outputs, strict=True))
        if output.numel() and not origin.from_kernel and not _plain(output, drawn)
    ]
    if unmade:
        message = (
            f"Output {unmade[0]} of {which} lies in memory that no launched kernel stored to, and PyTorch "
            "copied it from none: the kernels that ran are a decoy."
        )
        return state.cheated(WRITTEN, _exhibit("decoy-launch", message, called, drawn, outputs))
    later = [index for index, origin in enumerate(called.origins) if origin.changed_on_host]
    if later:
        message = (
            f"Output {later[0]} of {which} was changed by the host after the last kernel had written it, "
            "without PyTorch; on a GPU the host cannot write there."
        )
        return state.cheated(WRITTEN, _exhibit("written-on-host", message, called, drawn, outputs))
    state.ran(WRITTEN)
    _few_bytes(called, [_needed(output, drawn) for output in outputs], which, state)
    return None


def _plain(output: torch.Tensor, drawn: Sequence[Any]) -> bool:
    """Whether an output is one value throughout or an input as it came: that needs no kernel."""
    flat = output.reshape(-1)
    if bool((flat == flat[0]).all()):
        return True
    return any(isinstance(item, torch.Tensor) and bits_equal(item, output) for item in drawn)


def _needed(output: torch.Tensor, drawn: Sequence[Any]) -> float:
    """Share of an output that a kernel has to store: not what is one value throughout, nor an input's own.

    An update in place of a few rows stores those rows.
    """
    if _plain(output, drawn):
        return 0.0
    alike = [
        float((item == output).double().mean())
        for item in drawn
        if isinstance(item, torch.Tensor) and item.shape == output.shape and item.dtype == output.dtype
    ]
    return 1.0 - max(alike, default=0.0)


def _few_bytes(called: Called, needed: Sequence[float], which: str, state: Evidence) -> None:
    """A flag, once, where all launches together stored fewer bytes than the outputs need."""
    assert called.launches is not None
    assert called.origins is not None
    stored = sum(launch.counters.gmem_store_bytes for launch in called.launches)
    made = {
        origin.address: int(share * origin.size_bytes)
        for origin, share in zip(called.origins, needed, strict=True)
    }
    wanted = sum(made.values())
    known = any(item.kind == "few-bytes-written" for item in state.findings)
    if stored == 0 or stored >= wanted or known:
        return  # none counted: written by atomics or by the copy engine
    message = (
        f"The kernels of {which} stored {stored} bytes, and the outputs need {wanted}: the rest was put "
        "there by PyTorch or copied."
    )
    state.flag(WRITTEN, Finding(kind="few-bytes-written", message=message, severity=Severity.FLAG))


def compare_launches(first: Called, later: Called, state: Evidence) -> None:
    """A flag where two calls on inputs of one shape launch different kernels or grids."""
    if first.launches is None or later.launches is None:
        return
    before, after = launch_lines(first.launches), launch_lines(later.launches)
    if before == after:
        state.ran(SAME_LAUNCHES)
        return
    message = (
        f"A later call on inputs of the same shape launches {'; '.join(after) or 'nothing'} where an earlier "
        f"one launched {'; '.join(before) or 'nothing'}."
    )
    state.flag(SAME_LAUNCHES, Finding(kind="launches-differ", message=message, severity=Severity.FLAG))


def launch_lines(launches: Sequence[LaunchProfile]) -> tuple[str, ...]:
    """Each launch in words: name, grid, block."""
    return tuple(f"{one.kernel}, grid {one.grid}, block {one.block}" for one in launches)


def _exhibit(
    kind: str, message: str, called: Called, drawn: Sequence[Any], outputs: Sequence[torch.Tensor]
) -> Exhibit:
    origins: tuple[Origin, ...] = called.origins or ()
    return Exhibit(
        kind=kind,
        statement=message,
        inputs=excerpts(drawn, "input"),
        outputs=excerpts(outputs, "output"),
        trace=(
            *(launch_lines(called.launches or ()) or ("no kernel was launched",)),
            *(f"PyTorch: {item.op} on {item.elements} elements" for item in called.computed),
        ),
        addresses=(
            *(
                f"output {index} at {origin.address:#x}, {origin.size_bytes} bytes"
                for index, origin in enumerate(origins)
            ),
            *(f"stored to: {line}" for line in called.written),
        ),
    )
