"""Import and construction of a candidate: a file, a module, and ``ModelNew`` with the reference's state."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.evaluator.problem.loader import LoadedProblem, seed_everything
from cutegen_nb.evaluator.trial.candidate_fault import CONSTRUCTING, IMPORTING, CandidateFault, blamed


def write_source(source: str, folder: Path) -> Path:
    """Write the candidate into `folder` as a file, since the DSL reads a kernel's source with ``inspect``.

    Raises EvaluatorError when the disk does not take it.
    """
    path = folder / FILE_NAME
    try:
        folder.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
    except OSError as error:
        raise EvaluatorError(
            f"The candidate could not be written to {path} ({error}); free space there."
        ) from error
    return path


def import_candidate(path: Path, digest: str) -> ModuleType:
    """Import the file under a name made from `digest`. Raises CandidateFault."""
    name = f"candidate_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with blamed(IMPORTING, path):
        spec.loader.exec_module(module)
    return module


def construct(
    module: ModuleType, init_inputs: Sequence[Any], seed: int, device: str, path: Path
) -> Callable[..., Any]:
    """Build ``ModelNew`` under the seed the reference was built under. Raises CandidateFault."""
    factory = getattr(module, "ModelNew", None)
    if not isinstance(factory, type):
        finding = Finding(kind="no-model", message="After its import the file has no class ModelNew.")
        raise CandidateFault(Judged(verdict=Verdict.COMPILE_FAILED), finding)
    with blamed(CONSTRUCTING, path):
        seed_everything(seed)
        with torch.device(device):
            model = factory(*init_inputs)
        if not callable(model):
            raise TypeError(f"ModelNew gave {type(model).__name__}, which cannot be called")
        return model.to(device) if isinstance(model, torch.nn.Module) else model


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTransfer:
    """Result of copying the reference's state into a candidate."""

    renamed: Mapping[str, str]
    """The candidate's names of entries that it keeps under other names, by the reference's name."""
    missing: Mapping[str, torch.Tensor]
    """Initial values of redrawn entries that the candidate lacks, by the reference's name."""


def share_state(
    loaded: LoadedProblem, reference: torch.nn.Module, candidate: object, seed: int
) -> StateTransfer:
    """Copy the reference's state into the candidate, to the places that `matched` finds.

    The reference comes with its constant parameters (a scale of ones, a bias of zeros) redrawn. All other
    state of the candidate keeps the initialisation that the common seed gave both.
    """
    ours, own = dict(reference.state_dict()), state_of(candidate)
    by_name = all(name in own and own[name].shape == tensor.shape for name, tensor in ours.items())
    plain = ours if by_name else plain_state(loaded, seed, _device_of(ours))
    places = matched(plain, own)
    fill(own, ours, places)
    return StateTransfer(
        renamed={name: own_name for name, own_name in places.items() if name != own_name},
        missing={
            name: plain[name]
            for name, tensor in ours.items()
            if name not in places and not torch.equal(tensor, plain[name])
        },
    )


def state_of(candidate: object) -> dict[str, torch.Tensor]:
    """Parameters and buffers of a candidate by name; none where it is no module."""
    return dict(candidate.state_dict()) if isinstance(candidate, torch.nn.Module) else {}


def matched(plain: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """The candidate's name for each entry of the reference's state that it has.

    Entries match by name and shape, else by shape, dtype and initial values. `plain` are the reference's
    initial values, `own` the candidate's. Weights that were transposed or folded when the candidate was
    constructed match nothing.
    """
    places = {name: name for name, item in plain.items() if name in own and own[name].shape == item.shape}
    left = [name for name in own if name not in places]
    for name, item in plain.items():
        if name in places:
            continue
        same = next((one for one in left if _same_values(own[one], item)), None)
        if same is not None:
            places[name] = same
            left.remove(same)
    return places


def fill(
    own: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor], places: Mapping[str, str]
) -> None:
    """Copy `values` of the reference's state into `own` state of the candidate, at the names in `places`."""
    with torch.no_grad():
        for name, own_name in places.items():
            own[own_name].copy_(values[name])


def _same_values(own: torch.Tensor, plain: torch.Tensor) -> bool:
    return own.shape == plain.shape and own.dtype == plain.dtype and torch.equal(own, plain.to(own.device))


def plain_state(loaded: LoadedProblem, seed: int, device: torch.device) -> dict[str, torch.Tensor]:
    """The state that ``Model`` gives itself under `seed`, none of it redrawn."""
    seed_everything(seed)
    with torch.device(device):
        return dict(loaded.namespace["Model"](*loaded.init_inputs()).state_dict())


def _device_of(state: dict[str, torch.Tensor]) -> torch.device:
    return next(iter(state.values())).device
