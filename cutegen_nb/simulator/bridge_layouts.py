"""Notes the layouts of every program that the CuTe DSL compiles in this process.

The program is read as text before it is compiled and is not touched; what cannot be read is left out.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cutegen_nb.analysis.layout_ir import LONGEST_TEXT, MOST_RECORDS, named, read_layouts
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.simulator.bridge_dsl import before_compiling, type_attribute

_MOST_PROGRAMS = 16
"""Programs of one candidate that are read: one that compiles for every shape names the same layouts again."""


class LayoutNotes:
    """Layouts of what was compiled since :meth:`install`, in order, each once."""

    def __init__(self) -> None:
        self._found: dict[LayoutRecord, None] = {}
        self._programs = 0

    def of(self, source: str, name: str) -> tuple[LayoutRecord, ...]:
        """What was found in the file of this name, whose text is `source`, by the names it has there."""
        own = (record for record in self._found if record.file.rpartition("/")[2] == name)
        return named(tuple(replace(record, file=name) for record in own), source)

    def everywhere(self, is_wanted: Callable[[str], bool]) -> tuple[LayoutRecord, ...]:
        """What was found in each file that is wanted and can be read, by the names it has there."""
        found: list[LayoutRecord] = []
        for path in dict.fromkeys(record.file for record in self._found):
            if is_wanted(path):
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    source = Path(path).read_text(encoding="utf-8")
                    found += named(tuple(one for one in self._found if one.file == path), source)
        return tuple(found)

    def install(self) -> None:
        """Look at every program from now on. Imports the DSL."""
        before_compiling(self.look)

    def look(self, module: Any) -> None:
        """Read one traced program."""
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
    """What answers questions about types of a program."""

    @functools.cache
    def ask(kind: str, attribute: str) -> str:
        return type_attribute(module, kind, attribute).partition('"')[2].rpartition('"')[0]

    return ask
