"""Multiplicand types of the candidate's matrix instructions, read from its PTX."""

from __future__ import annotations

import re

import torch

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.evaluator.catalog.correctness import MATRIX_TYPES
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_INSTRUCTION = re.compile(r"\b(?:mma|wmma|wgmma|tcgen05)\.[\w.:]*")
"""A matrix instruction of PTX with its qualifiers: ``mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32``."""
_TYPE = re.compile(r"\.(tf32|bf16|f16|e4m3|e5m2|e2m1|s8|u8|s4|u4)\b")
"""A type of fewer bits than float32 among the qualifiers. Accumulators in f16 match as well."""


def matrix_types(trial: Trial) -> Ending | None:
    """Flag a float32 problem whose matrix instructions multiply in fewer bits. Simulator only.

    The flag decides nothing: a product of float32 accuracy may be made of several narrow products (three in
    TF32, say), which look the same in PTX. The error itself and the exact integers decide.
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
    """Map each narrow type in PTX texts, by name, to the first instruction that has it."""
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
    # An input in half precision makes narrow products faithful, whatever the other tensors are.
    tensors = [item for item in (*first.drawn, *first.wanted) if isinstance(item, torch.Tensor)]
    floating = [item.dtype for item in tensors if item.is_floating_point()]
    return bool(floating) and all(kind is torch.float32 for kind in floating)
