"""Check that a kernel of the candidate made the outputs; runs at every call on the simulator.

Decides only on what was observed: no launch at all, or an output that no kernel made. Its bytes were stored
by no launch, were made by PyTorch from no storage that a launch wrote, and equal nothing that a kernel left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.evaluator.catalog.work import LAUNCHED, SAME_LAUNCHES, WRITTEN
from cutegen_nb.evaluator.numerics.tolerance import bits_equal
from cutegen_nb.evaluator.trial.call import CallRecord, Origin
from cutegen_nb.evaluator.trial.compare import excerpts
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence

_NO_ELEMENTS = "the outputs have no elements"


def judge_work(called: CallRecord, drawn: Sequence[Any], which: str, state: Evidence) -> Ending | None:
    """Decide CHEATED where an output of this call came from no kernel; None otherwise and on a GPU.

    Where no kernel was launched and operations of PyTorch that were seen made every output, nothing was
    hidden: that is NOT_OWN_WORK.

    `which` names the call in messages: ``the first call``.
    """
    if called.launches is None or called.origins is None:
        return None
    outputs = [leaf for leaf in called.leaves if isinstance(leaf, torch.Tensor)]
    if not any(output.numel() for output in outputs):
        state.skipped(LAUNCHED, _NO_ELEMENTS)
        state.skipped(WRITTEN, _NO_ELEMENTS)
        return None
    if not called.launches and _made_openly(called):
        message = (
            f"No kernel was launched in {which} of forward: PyTorch's {_openly(called)} made the outputs. "
            "Write it in a kernel."
        )
        return state.not_own_work(LAUNCHED, _exhibit("torch-compute", message, called, drawn, outputs))
    if not called.launches:
        message = (
            f"The outputs are right but no kernel was launched in {which} of forward: something else made "
            "them."
        )
        return state.cheated(LAUNCHED, _exhibit("no-kernel", message, called, drawn, outputs))
    state.ran(LAUNCHED)
    return _written(called, drawn, which, outputs, state)


def _made_openly(called: CallRecord) -> bool:
    """Return whether operations of PyTorch that were seen in this call made every output."""
    assert called.origins is not None
    computed = [item for item in called.computed if not item.only_moves and not item.replaced]
    return bool(computed) and all(origin.explained for origin in called.origins)


def _openly(called: CallRecord) -> str:
    last = next(item for item in reversed(called.computed) if not item.only_moves)
    return f"{last.op} in line {last.line}" if last.line else last.op


def _written(
    called: CallRecord, drawn: Sequence[Any], which: str, outputs: Sequence[torch.Tensor], state: Evidence
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
    """Return whether an output is one value throughout or equals an input: neither needs a kernel."""
    flat = output.reshape(-1)
    if bool((flat == flat[0]).all()):
        return True
    return any(isinstance(item, torch.Tensor) and bits_equal(item, output) for item in drawn)


def _needed(output: torch.Tensor, drawn: Sequence[Any]) -> float:
    """Share of an output's elements that a kernel has to store: 1 less the largest share equal to an input.

    An update in place of a few rows stores those rows. A constant output or a copied input needs no store.
    """
    if _plain(output, drawn):
        return 0.0
    alike = [
        float((item == output).double().mean())
        for item in drawn
        if isinstance(item, torch.Tensor) and item.shape == output.shape and item.dtype == output.dtype
    ]
    return 1.0 - max(alike, default=0.0)


def _few_bytes(called: CallRecord, needed: Sequence[float], which: str, state: Evidence) -> None:
    """Flag, once, that all launches together stored fewer bytes than the outputs need."""
    assert called.launches is not None
    assert called.origins is not None
    stored = sum(launch.counters.gmem_store_bytes for launch in called.launches)
    # By address, so that several outputs in one storage count once.
    made = {
        origin.address: int(share * origin.size_bytes)
        for origin, share in zip(called.origins, needed, strict=True)
    }
    wanted = sum(made.values())
    known = any(item.kind == "few-bytes-written" for item in state.findings)
    if stored == 0 or stored >= wanted or known or called.library:
        return  # no store is counted where atomics or the copy engine wrote, or PyTorch as it may
    message = (
        f"The kernels of {which} stored {stored} bytes, and the outputs need {wanted}: the rest was put "
        "there by PyTorch or copied."
    )
    state.flag(WRITTEN, Finding(kind="few-bytes-written", message=message, severity=Severity.FLAG))


def compare_launches(first: CallRecord, later: CallRecord, state: Evidence) -> None:
    """Flag that two calls on inputs of the same shape launch different kernels, grids or blocks."""
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
    """Describe each launch in words: name, grid, block."""
    return tuple(f"{one.kernel}, grid {one.grid}, block {one.block}" for one in launches)


def _exhibit(
    kind: str, message: str, called: CallRecord, drawn: Sequence[Any], outputs: Sequence[torch.Tensor]
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
