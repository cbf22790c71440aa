"""Which types the candidate's matrix instructions multiply in, read from its PTX."""

from __future__ import annotations

import re

import torch

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.gpu.checks.registry.function import MATRIX_TYPES
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_INSTRUCTION = re.compile(r"\b(?:mma|wmma|wgmma|tcgen05)\.[\w.:]*")
_TYPE = re.compile(r"\.(tf32|bf16|f16|e4m3|e5m2|e2m1|s8|u8|s4|u4)\b")


def matrix_types(trial: Trial) -> Ending | None:
    """A flag where a float32 problem is multiplied in fewer bits.

    Splitting each number into several smaller ones is honest and looks the same here; the error itself and
    the exact integers decide.
    """
    simulation = trial.ground.simulation
    if simulation is None:
        return None
    kinds = reduced_types(dict(simulation.ptx))
    if not kinds or not _single_precision(trial):
        trial.state.ran(MATRIX_TYPES, ", ".join(sorted(kinds)) or "none")
        return None
    shown = ", ".join(f"{kind} ({instruction})" for kind, instruction in sorted(kinds.items()))
    message = (
        f"The problem is in float32 and the kernel multiplies in {shown}. Only a sum of several such "
        "products keeps float32's precision; the error and the exact integers show whether it does."
    )
    finding = Finding(kind="reduced-precision", message=message, severity=Severity.FLAG)
    trial.state.flag(MATRIX_TYPES, finding)
    return None


def reduced_types(ptx: dict[str, str]) -> dict[str, str]:
    """Narrow multiplicand types in PTX texts, each with the first instruction that has it."""
    found: dict[str, str] = {}
    for text in ptx.values():
        for match in _INSTRUCTION.finditer(text):
            for kind in _TYPE.findall(match.group()):
                found.setdefault(kind, match.group())
    return found


def _single_precision(trial: Trial) -> bool:
    first = trial.history.first
    if first is None:
        return False
    tensors = [item for item in (*first.drawn, *first.wanted) if isinstance(item, torch.Tensor)]
    floating = [item.dtype for item in tensors if item.is_floating_point()]
    return bool(floating) and all(kind is torch.float32 for kind in floating)
