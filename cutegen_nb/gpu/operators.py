"""Whose kernels PyTorch's operators have: ``torch.library`` lets anybody put another in their place.

An operator replaced so computes something else wherever it is called, in the reference as well, with every
function and every attribute of ``torch`` as it was.
"""

from __future__ import annotations

import os
import re

import torch

_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 - compared as text
_ANYBODYS = os.path.join(_TORCH_FOLDER, "library.py")  # noqa: PTH118 - compared as text
"""What registers for whoever calls ``torch.library.impl`` is given as the place."""
_KERNEL = re.compile(r"^(?P<key>[A-Za-z]+)(?:\[alias\])?: registered at (?P<place>.*?):\d+ ::", re.MULTILINE)
_COMPILED = (".cpp", ".cc", ".cu", ".h", ".cuh", ".hpp")
_SHAPES_ONLY = frozenset({"Meta"})
_PARTS = 8


def replaced_by(name: str) -> str:
    """Where the Python code lies that stands in for an operator (``aten::relu``); empty for PyTorch's own.

    Asks the dispatcher, some 70 µs an operator. PyTorch registers a few kernels from Python itself.
    """
    for found in _KERNEL.finditer(torch._C._dispatch_dump(name)):  # noqa: SLF001 - there is no public way
        place = found["place"]
        own = place.startswith(_TORCH_FOLDER) and place != _ANYBODYS
        if found["key"] in _SHAPES_ONLY or place.endswith(_COMPILED) or own:
            continue
        return "a kernel without a file" if place == os.devnull else os.path.basename(place)  # noqa: PTH119 - a name, often of no file
    return ""


class OperatorWatch:
    """Looks for operators of PyTorch's that were replaced, and remembers what it found.

    Made before a candidate's import: what is there by then is nobody's doing. The first look goes over all
    operators (3000, 30 ms), each later one over an eighth.
    """

    def __init__(self) -> None:
        names = torch._C._dispatch_get_all_op_names()  # noqa: SLF001 - there is no public way
        self._names = [name for name in names if name.startswith("aten::") and not replaced_by(name)]
        self._looks = 0
        self._found: dict[str, str] = {}

    @staticmethod
    def before() -> tuple[str, ...]:
        """What `now` gives as long as nothing is replaced."""
        return ()

    def now(self) -> tuple[str, ...]:
        """What was found so far, each with the place of its kernel."""
        for name in self._names[self._looks % _PARTS :: _PARTS] if self._looks else self._names:
            place = replaced_by(name)
            if place:
                self._found[name] = place
        self._looks += 1
        return tuple(f"{name} is now in {place}" for name, place in self._found.items())
