"""Replaced operators of PyTorch: ``torch.library`` lets any code register another kernel for one.

A replaced operator computes something else wherever it is called, in the reference as well. Every function
and attribute of ``torch`` stays as it was.
"""

from __future__ import annotations

import functools
import os
import re

import torch

_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 - compared as text
_LIBRARY_FILE = os.path.join(_TORCH_FOLDER, "library.py")  # noqa: PTH118 - compared as text
"""File that the dispatcher may name for a kernel that any caller of ``torch.library.impl`` registered."""
_KERNEL = re.compile(r"^(?P<key>[A-Za-z]+)(?:\[alias\])?: registered at (?P<place>.*?):\d+ ::", re.MULTILINE)
"""One kernel in the dispatcher's dump: its dispatch key and the file that registered it."""
_COMPILED = (".cpp", ".cc", ".cu", ".h", ".cuh", ".hpp")
"""Endings of files that compiled kernels were registered in."""
_SHAPES_ONLY = frozenset({"Meta"})
"""Dispatch keys of kernels that compute shapes and no values."""
_PARTS = 8
"""Parts of the list of operators; each look after the first goes over one."""


def replaced_by(name: str) -> str:
    """File of the Python code that stands in for an operator (``aten::relu``); empty for PyTorch's own.

    Kernels that PyTorch registers from its own Python files do not count.
    """
    return _foreign_file(_registrations(name))


def _registrations(name: str) -> str:
    """Return the dispatcher's dump of an operator, one line for each kernel; takes some 15 µs."""
    return str(torch._C._dispatch_dump(name))  # noqa: SLF001 - there is no public way


def _foreign_file(registrations: str) -> str:
    """File of the first kernel in a dump that is neither compiled nor PyTorch's; takes some 10 µs."""
    for found in _KERNEL.finditer(registrations):
        place = found["place"]
        own = place.startswith(_TORCH_FOLDER) and place != _LIBRARY_FILE
        if found["key"] in _SHAPES_ONLY or place.endswith(_COMPILED) or own:
            continue
        return "a kernel without a file" if place == os.devnull else os.path.basename(place)  # noqa: PTH119 - a name, often of no file
    return ""


def read_registrations() -> dict[str, str]:
    """Dumps of all operators whose kernels are PyTorch's own, by name.

    The template calls it ahead, which takes some 90 ms, and its forks find the result. Kernels registered in
    Python since then, such as a problem's, have every dump read anew. Compiled kernels never count.
    """
    in_python = getattr(torch.library, "_impls", None)  # names of what ``torch.library`` registered
    if in_python is None:
        return _own_registrations.__wrapped__(frozenset())
    return _own_registrations(frozenset(in_python))


@functools.lru_cache(maxsize=1)
def _own_registrations(_in_python: frozenset[str]) -> dict[str, str]:
    names = torch._C._dispatch_get_all_op_names()  # noqa: SLF001 - there is no public way
    dumps = {name: _registrations(name) for name in names if name.startswith("aten::")}
    return {name: text for name, text in dumps.items() if not _foreign_file(text)}


class OperatorWatch:
    """Search for replaced operators of PyTorch that keeps what it has found.

    To be made before a candidate's import: operators that are replaced by then are left out. The first look
    goes over all operators (some 3000), each later one over an eighth. A dump that is as before is not parsed
    again: looks are taken after every call, and parsing took two fifths of their time.
    """

    def __init__(self) -> None:
        self._own = dict(read_registrations())
        self._names = list(self._own)
        self._looks = 0
        self._found: dict[str, str] = {}

    def now(self) -> tuple[str, ...]:
        """Look once more; return all replaced operators found so far, each with the file of its kernel."""
        for name in self._names[self._looks % _PARTS :: _PARTS] if self._looks else self._names:
            text = _registrations(name)
            if text == self._own[name]:
                continue
            place = _foreign_file(text)
            if place:
                self._found[name] = place
            else:
                self._own[name] = text
        self._looks += 1
        return tuple(f"{name} is now in {place}" for name, place in self._found.items())
