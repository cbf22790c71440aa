"""A candidate as a real file and an imported module, and its ``ModelNew`` with the reference's state."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Finding, Judged, Verdict
from cutegen_nb.gpu.faults import CONSTRUCTING, IMPORTING, CandidateFault, blamed
from cutegen_nb.gpu.problem_source import LoadedProblem, seed_everything


def write_source(source: str, folder: Path) -> Path:
    """Put the candidate into `folder` as a file: the DSL reads a kernel's source with ``inspect``.

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
    """Import the file under a name of its own. Raises CandidateFault."""
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


def share_state(loaded: LoadedProblem, reference: torch.nn.Module, candidate: object, seed: int) -> bool:
    """Give both models the same state, copied by name; whether it is the reference's redrawn one.

    The reference comes with its constant parameters (a scale of ones, a bias of zeros) redrawn, so that a
    kernel that ignores them cannot pass. A candidate that keeps a parameter under a name or shape of its own
    can only have the initialisation that the common seed gave it: then the reference goes back to that one.
    """
    ours = dict(reference.state_dict())
    theirs = candidate.state_dict() if isinstance(candidate, torch.nn.Module) else {}
    complete = all(name in theirs and theirs[name].shape == tensor.shape for name, tensor in ours.items())
    with torch.no_grad():
        if not complete:
            reference.load_state_dict(plain_state(loaded, seed, _device_of(ours)))
    copy_state(reference, candidate)
    return complete


def plain_state(loaded: LoadedProblem, seed: int, device: torch.device) -> dict[str, torch.Tensor]:
    """The state that ``Model`` gives itself under `seed`, none of it redrawn."""
    seed_everything(seed)
    with torch.device(device):
        return dict(loaded.namespace["Model"](*loaded.init_inputs()).state_dict())


def copy_state(reference: torch.nn.Module, candidate: object) -> None:
    """Copy the reference's state to a model, by name and shape."""
    theirs = candidate.state_dict() if isinstance(candidate, torch.nn.Module) else {}
    with torch.no_grad():
        for name, tensor in reference.state_dict().items():
            if name in theirs and theirs[name].shape == tensor.shape:
                theirs[name].copy_(tensor)


def _device_of(state: dict[str, torch.Tensor]) -> torch.device:
    return next(iter(state.values())).device
