"""Folder for the bytecode of torch and the DSL, where their installation keeps none.

Importing both compiles thousands of source files if there is no bytecode, some 10 s at each start.
pip writes bytecode when it installs, and Python at the first import. Neither does so under
PYTHONDONTWRITEBYTECODE, as many container images set it, or in an environment that uv made and the person may
not write to. The template then keeps its bytecode in the person's cache folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

NEVER_WRITTEN, ELSEWHERE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"
"""Environment variables of Python that say where it writes bytecode."""
_LARGE = ("torch", "cutlass")
"""Packages whose bytecode is looked for."""
_FOLDER = "kernels-bytecode"
"""Name of the folder. This package's name would tell a candidate that it is being judged."""


def bytecode_variables(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return those of Python's variables that the template needs, from the person's environment.

    They are the person's own unless each start would compile torch or the DSL again.
    """
    own = {name: inherited[name] for name in (NEVER_WRITTEN, ELSEWHERE) if name in inherited}
    if ELSEWHERE in own and NEVER_WRITTEN not in own:
        return own
    if all(_has_bytecode(name, may_write=NEVER_WRITTEN not in own) for name in _LARGE):
        return own
    return {ELSEWHERE: str(cache_folder(inherited) / _FOLDER)}


def cache_folder(inherited: Mapping[str, str]) -> Path:
    """Return the person's cache folder, by the XDG Base Directory Specification."""
    return Path(inherited.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))  # noqa: PTH111 - no error without a home


def _has_bytecode(package: str, *, may_write: bool) -> bool:
    """Return whether a package has bytecode, or its first import writes it; True for one that is missing."""
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return True
    if found is None or not found.cached or not found.origin:
        return True
    return Path(found.cached).exists() or (may_write and os.access(Path(found.origin).parent, os.W_OK))
