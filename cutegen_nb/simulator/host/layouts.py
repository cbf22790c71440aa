"""Layouts and tensors of every program that the CuTe DSL compiles in this process.

They are read from the text of the traced MLIR module before it is compiled. The module is not changed. A
program that cannot be read is left out.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cutegen_nb.analysis.layout.ir import LONGEST_TEXT, MOST_RECORDS, named, read_layouts
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.simulator.host.dsl import before_compiling, type_attribute

_MOST_PROGRAMS = 16
"""Most programs of one candidate that are read. Compiling once per shape repeats the same layouts."""


class LayoutCollector:
    """Layouts of the programs compiled since :meth:`install`, in order, without duplicates."""

    def __init__(self) -> None:
        self._found: dict[LayoutRecord, None] = {}
        self._programs = 0

    def of(self, source: str, name: str) -> tuple[LayoutRecord, ...]:
        """Layouts from the file called ``name``, with the names that its text ``source`` gives them."""
        own = (record for record in self._found if record.file.rpartition("/")[2] == name)
        return named(tuple(replace(record, file=name) for record in own), source)

    def everywhere(self, is_wanted: Callable[[str], bool]) -> tuple[LayoutRecord, ...]:
        """Layouts from each readable file that ``is_wanted`` accepts, with the names in that file's text."""
        found: list[LayoutRecord] = []
        for path in dict.fromkeys(record.file for record in self._found):
            if is_wanted(path):
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    source = Path(path).read_text(encoding="utf-8")
                    found += named(tuple(one for one in self._found if one.file == path), source)
        return tuple(found)

    def install(self) -> None:
        """Read every program compiled from now on. Imports the DSL."""
        before_compiling(self.look)

    def look(self, module: Any) -> None:
        """Read the layouts of one traced program, an MLIR module."""
        if self._programs >= _MOST_PROGRAMS or len(self._found) >= MOST_RECORDS:
            return
        self._programs += 1
        try:
            text = module.operation.get_asm(enable_debug_info=True)
            for record in read_layouts(text, _asking(module)) if len(text) <= LONGEST_TEXT else ():
                self._found.setdefault(record)
        except (AttributeError, ImportError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
            return  # another release of the DSL; a kernel is judged without drawings of its layouts


def _asking(module: Any) -> Callable[[str, str], str]:
    """Return a cached function that asks the compiler for an attribute of a type of the program."""

    @functools.cache
    def ask(kind: str, attribute: str) -> str:
        return type_attribute(module, kind, attribute).partition('"')[2].rpartition('"')[0]

    return ask
