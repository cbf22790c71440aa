"""Serialisation of arguments and outputs between processes: values in the record, tensors as raw files.

Nothing is pickled, so reading the files of an untrusted process runs no code of it. The reader states the
name, type and size of a file; a link, a folder or a file of another size is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cutegen_nb.core.errors import EvaluatorError, UsageError

_FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_OTHERS = ("complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "bool")
DTYPES = frozenset({*_FLOATS, *_OTHERS})
"""Tensor dtypes that can be sent, by their names in torch."""
LARGEST_BYTES = 16 << 30
"""Largest file that is read, in bytes."""
_DEEPEST = 8
"""Deepest nesting of containers that is sent."""
Packed = dict[str, Any]
"""One value in the form it has in a record."""


def pack(item: Any, folder: Path, name: str) -> Packed:
    """Pack a tensor, number or None; a tensor's elements go into the file `name` of `folder`, row-major.

    Raises UsageError for anything else, and for a tensor of a dtype outside `DTYPES`.
    """
    if isinstance(item, bool | int) or item is None:
        return {"value": item}
    if isinstance(item, float):
        return {"float": item.hex()}  # exact, and JSON has no infinity and no NaN
    if not isinstance(item, torch.Tensor):
        raise UsageError(
            f"a kernel takes tensors and numbers, and {name.replace('-', ' ')} is a {type(item).__name__}"
        )
    kind = str(item.dtype).removeprefix("torch.")
    if kind not in DTYPES:
        raise UsageError(f"a tensor of {kind} cannot be sent to the worker: convert it first")
    # Apply lazy conjugation and negation, on which `view` to another dtype refuses to work.
    meant = item.detach().resolve_conj().resolve_neg()
    flat = meant.cpu().contiguous().reshape(-1).view(torch.uint8)
    flat.numpy().tofile(folder / name)
    # Strides of a clone: elements of an expanded tensor share memory.
    strides = torch.empty_like(item, device="meta").stride()
    return {"file": name, "dtype": kind, "shape": list(item.shape), "stride": list(strides)}


def pack_nested(item: Any, folder: Path, name: str, depth: int = 0) -> Packed:
    """Pack a constructor's argument, which may also be text, a dtype, or a container of such values.

    Raises UsageError for anything else.
    """
    if isinstance(item, str):
        return {"value": item}
    if isinstance(item, torch.dtype):
        return {"torch": str(item).removeprefix("torch.")}
    if depth < _DEEPEST and type(item) in {list, tuple, torch.Size}:
        parts = [pack_nested(part, folder, f"{name}-{i}", depth + 1) for i, part in enumerate(item)]
        return {"list" if type(item) is list else "tuple": parts}
    if depth < _DEEPEST and type(item) is dict and all(isinstance(key, str) for key in item):
        parts = [pack_nested(part, folder, f"{name}-{i}", depth + 1) for i, part in enumerate(item.values())]
        return {"keys": list(item), "values": parts}
    return pack(item, folder, name)


def unpack(packed: Packed, folder: Path, device: str = "cpu") -> Any:
    """Restore a packed value; a tensor goes to `device` with its recorded strides.

    Raises EvaluatorError where a file is not what the record says, OSError where there is none.
    """
    if "float" in packed:
        return float.fromhex(packed["float"])
    if "torch" in packed:
        return getattr(torch, packed["torch"])
    if "keys" in packed:
        return dict(
            zip(packed["keys"], (unpack(one, folder, device) for one in packed["values"]), strict=True)
        )
    for kind, make in (("list", list), ("tuple", tuple)):
        if kind in packed:
            return make(unpack(one, folder, device) for one in packed[kind])
    if "file" not in packed:
        return packed["value"]
    read = read_tensor(folder / packed["file"], packed["dtype"], packed["shape"])
    # A copy in torch's own memory: NumPy's buffer, which holds the file, is less aligned.
    made = torch.empty_strided(read.shape, packed["stride"], dtype=read.dtype, device=device)
    return made.copy_(read)


def read_tensor(path: Path, kind: str, shape: Sequence[int]) -> torch.Tensor:
    """Read a contiguous tensor of dtype `kind` and `shape` from the file `path`.

    Raises EvaluatorError where the file is something else, OSError where there is none.
    """
    if kind not in DTYPES or any(extent < 0 for extent in shape):
        raise EvaluatorError(f"the worker named a tensor of {kind} and shape {shape}: call it again")
    dtype = getattr(torch, kind)
    # Product in Python integers, which do not overflow.
    wanted = int(np.prod(shape, dtype=object)) * dtype.itemsize if shape else dtype.itemsize
    data = _bytes(path, wanted)
    return torch.from_numpy(data).view(dtype).reshape(shape) if data.size else torch.empty(shape, dtype=dtype)


def form(tensor: torch.Tensor) -> Packed:
    """Dtype and shape of a tensor, in the form they have in a record."""
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}


def _bytes(path: Path, wanted: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Read a regular file of `wanted` bytes. Raises EvaluatorError for another file, OSError for a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size != wanted or wanted > LARGEST_BYTES:
            raise EvaluatorError(
                f"the worker left {found.st_size} bytes where {wanted} were announced: call it again"
            )
        return np.fromfile(file, dtype=np.uint8)
